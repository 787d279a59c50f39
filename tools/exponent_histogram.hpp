// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How often which power of two occurs among values, as text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace natagg::tools {

class ExponentHistogram {
 public:
  void add(std::span<const float> values);

  [[nodiscard]] std::uint64_t zeros() const { return zeros_; }
  [[nodiscard]] std::uint64_t specials() const { return specials_; }

  /// Values from 2^exponent to below 2^(exponent + 1), in magnitude.
  [[nodiscard]] std::uint64_t at(int exponent) const;

  /// One line for zeros, one for each four exponents that occur, one for NaN and infinities.
  [[nodiscard]] std::string to_text() const;

 private:
  static constexpr int kLowest = -149;  // of a denormal float32
  static constexpr int kHighest = 127;

  std::array<std::uint64_t, kHighest - kLowest + 1> counts_{};
  std::uint64_t zeros_ = 0;
  std::uint64_t specials_ = 0;
};

}  // namespace natagg::tools
