// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The definitions of nat8.hpp and rounding.hpp a second time, in 80-bit floating point and by
// other means than the code under test: frexp, exact comparison, and a check of quotients by
// multiplication.
#pragma once

#include <cstdint>

#include "proto/nat8.hpp"

namespace natagg::oracle {

struct Outcome {
  std::uint8_t byte = 0;
  nat8::Tally tally;

  bool operator==(const Outcome&) const = default;
};

/// Every float converts to double without loss.
[[nodiscard]] Outcome encode(double value, int shift, std::uint64_t fraction);
[[nodiscard]] Outcome recompress(std::int64_t sum, std::uint64_t fraction);

/// An IEEE 754 format, by its significant bits and the exponents of its normal range.
struct FloatFormat {
  int precision;
  int min_exponent;
  int max_exponent;
};
inline constexpr FloatFormat kFloat32 = {24, -126, 127};
inline constexpr FloatFormat kFloat64 = {53, -1022, 1023};
inline constexpr FloatFormat kFloat16 = {11, -14, 15};
inline constexpr FloatFormat kBfloat16 = {8, -126, 127};

/// Whether `quotient` is 2^exponent * multiplier / divisor rounded to nearest even.
[[nodiscard]] bool is_rounded_quotient(double quotient, int exponent, std::uint32_t divisor,
                                       const FloatFormat& format, std::uint32_t multiplier = 1);

/// The value of the bits of a float16, and of a bfloat16.
[[nodiscard]] double from_float16(std::uint16_t bits);
[[nodiscard]] double from_bfloat16(std::uint16_t bits);

/// R for `element`, from Philox written out in 64-bit arithmetic.
[[nodiscard]] std::uint64_t fraction(std::uint64_t seed, std::uint32_t operation, std::uint16_t who,
                                     std::uint64_t element);

}  // namespace natagg::oracle
