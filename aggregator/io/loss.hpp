// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Seeded loss, a supported option: tests and users see how jobs behave on a lossy network.
#pragma once

#include <cstdint>

namespace natagg::aggregator::io {

class Loss {
 public:
  Loss(double probability, std::uint64_t seed) : probability_(probability), state_(seed) {}

  /// Whether the next datagram is to be lost.
  bool draw() {
    if (probability_ == 0) return false;
    constexpr double kUnit = 0x1p-53;
    return static_cast<double>(next() >> 11) * kUnit < probability_;
  }

 private:
  /// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15;
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
    return z ^ (z >> 31);
  }

  double probability_;
  std::uint64_t state_;
};

}  // namespace natagg::aggregator::io
