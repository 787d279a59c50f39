// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How a magnitude is rounded to one of its two neighbouring powers of two.
//
// A magnitude u >= 1 is 2^k (1 + f), 0 <= f < 1, and rounds up to 2^(k+1) exactly when f + R >= 1,
// where R is a 64-bit binary fraction: uniform for stochastic rounding, so that the expectation is
// exact, and one half for nearest (a tie goes away from zero). A magnitude u < 1, below the
// smallest code, rounds up to 1 exactly when u + R >= 1, else to zero.
//
// R depends only on (seed, who rounds, operation, element). Its upper 16 bits come from a Philox
// block shared by eight elements; its lower 48 bits, from a block of the element's own, matter only
// when the upper 16 bits of f + R are all ones (one value in 65,536), so a kernel draws them only
// then and is exact all the same.
#pragma once

#include <cstdint>

#include "proto/philox.hpp"

namespace natagg::proto {

enum class Rounding : std::uint8_t { kStochastic = 0, kNearest = 1 };

/// Who rounds: a rank, or kAggregatorRank (packet.hpp).
struct RoundingKey {
  std::uint64_t seed = 0;
  std::uint32_t operation = 0;
  std::uint16_t who = 0;
  Rounding mode = Rounding::kStochastic;

  [[nodiscard]] constexpr PhiloxKey philox_key() const {
    return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  }
};

/// Elements whose 16-bit fractions come from one group of 16 Philox blocks. The layout suits a
/// vector of 16 32-bit lanes: element i of a group takes block i % 16, word i / 32, and of that
/// word the low half when i / 16 is even, else the high half; no lane ever has to move.
inline constexpr std::uint64_t kRandomGroup = 128;

/// Philox counter of the block that holds the upper 16 bits for `element`.
[[nodiscard]] constexpr PhiloxCounter coarse_counter(const RoundingKey& key,
                                                     std::uint64_t element) {
  const std::uint64_t block = element / kRandomGroup * 16 + element % 16;
  return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), key.operation,
          std::uint32_t{key.who}};
}

/// Philox counter of the block that holds the lower 48 bits for `element`.
[[nodiscard]] constexpr PhiloxCounter fine_counter(const RoundingKey& key, std::uint64_t element) {
  return {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32),
          key.operation, std::uint32_t{key.who} | 1U << 16};
}

/// The upper 16 bits of R for stochastic rounding.
[[nodiscard]] constexpr std::uint16_t random_coarse(const RoundingKey& key, std::uint64_t element) {
  const PhiloxCounter words = philox4x32(coarse_counter(key, element), key.philox_key());
  const std::uint64_t i = element % kRandomGroup;
  return static_cast<std::uint16_t>(words[i / 32] >> (16 * (i / 16 % 2)));
}

/// The lower 48 bits of R for stochastic rounding.
[[nodiscard]] constexpr std::uint64_t random_fine(const RoundingKey& key, std::uint64_t element) {
  const PhiloxCounter words = philox4x32(fine_counter(key, element), key.philox_key());
  return (std::uint64_t{words[1]} << 32 | words[0]) & 0xFFFF'FFFF'FFFF;
}

/// R as a 64-bit binary fraction, for either mode.
[[nodiscard]] constexpr std::uint64_t rounding_fraction(const RoundingKey& key,
                                                        std::uint64_t element) {
  if (key.mode == Rounding::kNearest) return std::uint64_t{1} << 63;
  return std::uint64_t{random_coarse(key, element)} << 48 | random_fine(key, element);
}

}  // namespace natagg::proto
