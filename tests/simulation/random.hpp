// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The one source of chance in the simulator. It uses no std distribution, because their results
// differ between standard libraries and a seed must mean the same run everywhere.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace natagg::simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }

  /// Uniform in [0, bound); bound > 0. The modulo's bias is below 2^-32 for the bounds used here.
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }

  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  /// True with `probability`; draws nothing when it is 0, so that a fault switched off does not
  /// change the others.
  bool chance(double probability) { return probability > 0 && unit() < probability; }

  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace natagg::simulation
