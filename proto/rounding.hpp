// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How a magnitude is rounded to one of its two neighbouring powers of two.
//
// A magnitude u >= 1 is 2^k (1 + f), 0 <= f < 1, and rounds up to 2^(k+1) exactly when f + R >= 1,
// where R is a 64-bit binary fraction: uniform for stochastic rounding, so that the expectation is
// exact, and one half for nearest (a tie goes away from zero). A magnitude u < 1, below the
// smallest code, rounds up to 1 exactly when u + R >= 1, else to zero.
//
// R depends only on (seed, who rounds, operation, element). Its lower 48 bits come from a Philox
// block of the element's own and matter only when the upper 16 bits of f + R are all ones (one
// value in 65,536), so a kernel draws them only then and is exact all the same.
//
// The upper 16 bits come from a group of 16 Philox blocks that 2,048 elements share, in 128 rows of
// 16 elements. The blocks are rows 0 to 7, and each row after these is the exclusive or of three:
// R_v = R_(v-6) ^ R_(v-7) ^ R_0. Written as S_v = R_v ^ R_0 that is the m-sequence of x^7 + x + 1:
// S_1 to S_127 are the 127 different combinations of seven rows, so the numbers of any three
// elements are uniform and independent. Expectation, variance, covariance and the variance of the
// squared error are those of wholly independent numbers, at a 16th of their cost; and because
// sums of two rows the same distance apart also all differ, so is the variance of any sample
// correlation. docs/numerics.md has the argument.
#pragma once

#include <array>
#include <cstddef>
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

inline constexpr std::uint64_t kRandomGroup = 2048;  // elements
inline constexpr std::uint64_t kRandomRow = 16;      // elements
inline constexpr std::uint64_t kGroupRows = kRandomGroup / kRandomRow;
inline constexpr std::uint64_t kGroupBlocks = 16;
inline constexpr unsigned kDrawnRows = 8;  // the others follow

/// Philox counter of block `index`, 0 to 15, of the group that holds `element`. Number l of drawn
/// row j is the group's 16-bit number 16 j + l, eight to a block, the low half of a word first.
[[nodiscard]] constexpr PhiloxCounter coarse_counter(const RoundingKey& key, std::uint64_t element,
                                                     unsigned index) {
  const std::uint64_t block = element / kRandomGroup * kGroupBlocks + index;
  return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), key.operation,
          std::uint32_t{key.who}};
}

/// The upper 16 bits of R of the elements of one group, by row.
using RandomRow = std::array<std::uint16_t, kRandomRow>;
using RandomGroup = std::array<RandomRow, kGroupRows>;

/// For stochastic rounding, of the group that holds `element`.
[[nodiscard]] constexpr RandomGroup random_group(const RoundingKey& key, std::uint64_t element) {
  RandomGroup rows{};
  for (unsigned i = 0; i < kGroupBlocks; ++i) {
    const PhiloxCounter words = philox4x32(coarse_counter(key, element, i), key.philox_key());
    for (unsigned n = 0; n < 8; ++n) {
      rows[i / 2][i % 2 * 8 + n] = static_cast<std::uint16_t>(words[n / 2] >> (16 * (n % 2)));
    }
  }
  for (std::size_t v = kDrawnRows; v < kGroupRows; ++v) {
    for (std::size_t lane = 0; lane < kRandomRow; ++lane) {
      rows[v][lane] =
          static_cast<std::uint16_t>(rows[v - 6][lane] ^ rows[v - 7][lane] ^ rows[0][lane]);
    }
  }
  return rows;
}

/// Philox counter of the block that holds the lower 48 bits for `element`.
[[nodiscard]] constexpr PhiloxCounter fine_counter(const RoundingKey& key, std::uint64_t element) {
  return {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32),
          key.operation, std::uint32_t{key.who} | 1U << 16};
}

/// The lower 48 bits of R for stochastic rounding.
[[nodiscard]] constexpr std::uint64_t random_fine(const RoundingKey& key, std::uint64_t element) {
  const PhiloxCounter words = philox4x32(fine_counter(key, element), key.philox_key());
  return (std::uint64_t{words[1]} << 32 | words[0]) & 0xFFFF'FFFF'FFFF;
}

/// R of any elements under one key, cheap for elements of one group after another.
class RoundingFractions {
 public:
  explicit constexpr RoundingFractions(const RoundingKey& key) : key_(key) {}

  [[nodiscard]] constexpr const RoundingKey& key() const { return key_; }

  /// The upper 16 bits for stochastic rounding.
  [[nodiscard]] constexpr std::uint16_t coarse(std::uint64_t element) {
    const std::uint64_t group = element / kRandomGroup;
    if (group != group_ || !drawn_) {
      rows_ = random_group(key_, element);
      group_ = group;
      drawn_ = true;
    }
    return rows_[element % kRandomGroup / kRandomRow][element % kRandomRow];
  }

  /// R as a 64-bit binary fraction, for either mode.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t element) {
    if (key_.mode == Rounding::kNearest) return std::uint64_t{1} << 63;
    return std::uint64_t{coarse(element)} << 48 | random_fine(key_, element);
  }

 private:
  RoundingKey key_;
  std::uint64_t group_ = 0;
  bool drawn_ = false;
  RandomGroup rows_{};
};

/// Likewise for one element.
[[nodiscard]] constexpr std::uint64_t rounding_fraction(const RoundingKey& key,
                                                        std::uint64_t element) {
  return RoundingFractions(key)(element);
}

}  // namespace natagg::proto
