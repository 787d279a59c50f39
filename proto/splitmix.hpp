// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): for what
// must be cheap, seeded and well mixed, but decides no value. Rounding draws from philox.hpp.
#pragma once

#include <cstdint>

namespace natagg::proto {

/// The finaliser: a permutation of 64-bit numbers in which each bit of `x` changes half of all.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EB;
  return x ^ (x >> 31);
}

/// The generator. Seeds that differ by a multiple of its increment give the same sequence, shifted.
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() { return mix(state_ += 0x9E37'79B9'7F4A'7C15); }

 private:
  std::uint64_t state_;
};

}  // namespace natagg::proto
