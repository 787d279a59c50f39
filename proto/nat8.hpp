// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// nat8, the byte that natural compression sends for a value, and the scalar code that defines it.
// Every kernel must give the same bytes.
//
//   bit 7     sign
//   bit 6     flag: 0 a power of two, 1 zero or a special
//   bits 5..0 code
//
// Flag clear: (-1)^sign 2^(code - 50 + shift), codes 0 to 60. Flag set: 0x40 zero, 0x41 +Inf,
// 0xC1 -Inf, 0x42 NaN. Any other byte is malformed. A set flag makes code | flag a shift count of
// 64 or more, which vector and switch hardware turn into an addend of 0 with no branch.
#pragma once

#include <cstdint>

#include "proto/rounding.hpp"

namespace natagg::nat8 {

inline constexpr std::uint8_t kSign = 0x80;
inline constexpr std::uint8_t kFlag = 0x40;
inline constexpr std::uint8_t kZero = 0x40;
inline constexpr std::uint8_t kPositiveInf = 0x41;
inline constexpr std::uint8_t kNegativeInf = 0xC1;
inline constexpr std::uint8_t kNan = 0x42;

inline constexpr int kMinExponent = -50;  // of code 0, before the job's shift
inline constexpr int kMaxExponent = 10;   // of code 60
inline constexpr int kMaxCode = kMaxExponent - kMinExponent;

/// A job's power-of-two shift of the window, for gradients under loss scaling. The limit keeps
/// every code's value a normal float32, and float32's denormals below every code.
inline constexpr int kMaxShift = 64;  // -64 to 64

[[nodiscard]] constexpr bool is_special(std::uint8_t byte) {
  return byte == kPositiveInf || byte == kNegativeInf || byte == kNan;
}

[[nodiscard]] constexpr bool is_valid(std::uint8_t byte) {
  if ((byte & kFlag) == 0) return (byte & 0x3F) <= kMaxCode;
  return byte == kZero || is_special(byte);
}

/// What happened to the values of one or more kernel calls; each call adds to it.
struct Tally {
  std::uint64_t clipped = 0;  // finite, above 2^(10 + shift): forced down, which biases
  std::uint64_t flushed = 0;  // nonzero, below 2^(-50 + shift), and rounded to zero
  std::uint64_t zeros = 0;    // were zero
  std::uint64_t nans = 0;
  std::uint64_t infs = 0;

  constexpr bool operator==(const Tally&) const = default;
  constexpr Tally& operator+=(const Tally& other) {
    clipped += other.clipped;
    flushed += other.flushed;
    zeros += other.zeros;
    nans += other.nans;
    infs += other.infs;
    return *this;
  }
};

/// The byte for `value`, rounded with the 64-bit binary fraction `fraction` (rounding.hpp).
/// Independent of the floating-point environment. |shift| <= kMaxShift.
[[nodiscard]] std::uint8_t encode(float value, int shift, std::uint64_t fraction, Tally& tally);
[[nodiscard]] std::uint8_t encode(double value, int shift, std::uint64_t fraction, Tally& tally);

/// Likewise for the bits of an IEEE 754 binary16, and of a bfloat16.
[[nodiscard]] std::uint8_t encode_float16(std::uint16_t bits, int shift, std::uint64_t fraction,
                                          Tally& tally);
[[nodiscard]] std::uint8_t encode_bfloat16(std::uint16_t bits, int shift, std::uint64_t fraction,
                                           Tally& tally);

/// The byte for a slot's exact `sum` in units of 2^(-50 + shift), rounded likewise. Sums beyond
/// the largest code clip to it.
[[nodiscard]] std::uint8_t recompress(std::int64_t sum, std::uint64_t fraction, Tally& tally);

/// A valid byte's value in units of 2^(-50 + shift): what a slot adds. 0 for zero and specials.
[[nodiscard]] constexpr std::int64_t addend(std::uint8_t byte) {
  if ((byte & kFlag) != 0) return 0;
  const std::int64_t magnitude = std::int64_t{1} << (byte & 0x3F);
  return (byte & kSign) != 0 ? -magnitude : magnitude;
}

/// A valid byte's value divided by `divisor` (>= 1), correctly rounded to nearest even, whatever
/// the floating-point environment.
[[nodiscard]] float decode_float(std::uint8_t byte, int shift, std::uint32_t divisor);
[[nodiscard]] double decode_double(std::uint8_t byte, int shift, std::uint32_t divisor);

/// Likewise as bits. What is beyond the format's range becomes infinite, as IEEE 754 has it.
[[nodiscard]] std::uint16_t decode_float16(std::uint8_t byte, int shift, std::uint32_t divisor);
[[nodiscard]] std::uint16_t decode_bfloat16(std::uint8_t byte, int shift, std::uint32_t divisor);

/// What a result's value is multiplied with: `multiplier` / `divisor`, both at least 1. A full
/// average has 1 / world; a sum of m of n ranks, n / m.
struct Scale {
  std::uint32_t multiplier = 1;
  std::uint32_t divisor = 1;
};

/// A valid byte's value times `scale`, rounded likewise, once.
[[nodiscard]] float decode_float(std::uint8_t byte, int shift, const Scale& scale);
[[nodiscard]] double decode_double(std::uint8_t byte, int shift, const Scale& scale);
[[nodiscard]] std::uint16_t decode_float16(std::uint8_t byte, int shift, const Scale& scale);
[[nodiscard]] std::uint16_t decode_bfloat16(std::uint8_t byte, int shift, const Scale& scale);

}  // namespace natagg::nat8
