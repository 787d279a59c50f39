// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Seeded loss, a supported option of daemon and worker: tests and users see how jobs behave on a
// lossy network.
#pragma once

#include <cstdint>

#include "proto/splitmix.hpp"

namespace natagg::proto {

class Loss {
 public:
  /// `probability` is from 0 to 1. Where two are seeded from one number, the other's seed is ~seed.
  Loss(double probability, std::uint64_t seed) : probability_(probability), random_(seed) {}

  /// Whether the next datagram is to be lost.
  bool draw() {
    if (probability_ == 0) return false;
    // 53 random bits, exact in a double: uniform in [0, 1).
    return static_cast<double>(random_.next() >> 11) * 0x1p-53 < probability_;
  }

 private:
  double probability_;
  SplitMix64 random_;
};

}  // namespace natagg::proto
