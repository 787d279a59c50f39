// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/nat8.hpp"

#include <bit>

namespace natagg::nat8 {
namespace {

/// An IEEE 754 binary format whose bit pattern fits `Bits`.
template <typename BitsType, int kStoredBits, int kExponentBias>
struct Format {
  using Bits = BitsType;
  static constexpr int kFraction = kStoredBits;
  static constexpr int kBias = kExponentBias;
  static constexpr Bits kSignBit = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  static constexpr Bits kFractionMask = static_cast<Bits>((Bits{1} << kFraction) - 1);
  static constexpr Bits kInfinity = static_cast<Bits>(~(kSignBit | kFractionMask));
  static constexpr Bits kQuietNan = static_cast<Bits>(kInfinity | Bits{1} << (kFraction - 1));
};
using Binary16 = Format<std::uint16_t, 10, 15>;
using Bfloat16 = Format<std::uint16_t, 7, 127>;
using Binary32 = Format<std::uint32_t, 23, 127>;
using Binary64 = Format<std::uint64_t, 52, 1023>;

/// The code or zero for the magnitude u = `significand` 2^`exponent` > 0, in units of code 0.
std::uint8_t round_magnitude(std::uint64_t significand, int exponent, std::uint64_t fraction,
                             Tally& tally) {
  const int leading_zeros = std::countl_zero(significand);
  const std::uint64_t normalised = significand << leading_zeros;
  const int floor_log2 = 63 - leading_zeros + exponent;
  if (floor_log2 < 0) {
    // u as a 64-bit binary fraction; what is cut off can't carry, as `fraction` has 64 bits too.
    const int shift = -1 - floor_log2;
    const std::uint64_t u = shift < 64 ? normalised >> shift : 0;
    if (u + fraction < u) return 0;
    ++tally.flushed;
    return kZero;
  }
  const std::uint64_t f = normalised << 1;
  if (floor_log2 > kMaxCode || (floor_log2 == kMaxCode && f != 0)) {
    ++tally.clipped;
    return kMaxCode;
  }
  const bool up = f + fraction < f;
  return static_cast<std::uint8_t>(floor_log2 + (up ? 1 : 0));
}

template <typename F>
std::uint8_t encode_bits(typename F::Bits bits, int shift, std::uint64_t fraction, Tally& tally) {
  const std::uint8_t sign = (bits & F::kSignBit) != 0 ? kSign : std::uint8_t{0};
  const auto magnitude = static_cast<typename F::Bits>(bits & ~F::kSignBit);
  if (magnitude == 0) {
    ++tally.zeros;
    return kZero;
  }
  if (magnitude > F::kInfinity) {
    ++tally.nans;
    return kNan;
  }
  if (magnitude == F::kInfinity) {
    ++tally.infs;
    return kPositiveInf | sign;
  }
  // A denormal has the exponent of the smallest normal and no implicit leading one.
  const int biased = static_cast<int>(magnitude >> F::kFraction);
  const std::uint64_t stored = magnitude & F::kFractionMask;
  const std::uint64_t significand =
      biased == 0 ? stored : stored | std::uint64_t{1} << F::kFraction;
  const int exponent = (biased == 0 ? 1 : biased) - F::kBias - F::kFraction;
  const std::uint8_t code =
      round_magnitude(significand, exponent - kMinExponent - shift, fraction, tally);
  return code == kZero ? kZero : code | sign;
}

/// The bits of 2^exponent `scale` > 0, rounded to nearest even.
template <typename F>
typename F::Bits product_bits(int exponent, const Scale& scale) {
  // The scale is 2^power (remainder / divisor), and the latter is in [1, 2).
  std::uint64_t remainder = scale.multiplier;
  std::uint64_t divisor = scale.divisor;
  int power = std::countl_zero(divisor) - std::countl_zero(remainder);
  if (power < 0) {
    remainder <<= -power;
  } else {
    divisor <<= power;
  }
  if (remainder < divisor) {
    remainder <<= 1;
    --power;
  }
  const int leading = exponent + power;
  if (leading > F::kBias) return F::kInfinity;
  // Bits after the leading one; fewer where the product is denormal, and with none left, not even
  // half of the smallest, it is zero.
  const int missing = leading < 1 - F::kBias ? 1 - F::kBias - leading : 0;
  const int kept = F::kFraction - missing;
  if (kept < -1) return 0;
  // Long division, a bit at a time: the leading one, the kept bits, and one to round with.
  std::uint64_t quotient = 0;
  for (int step = kept + 1;; --step) {
    quotient = quotient << 1 | (remainder >= divisor ? 1 : 0);
    if (remainder >= divisor) remainder -= divisor;
    if (step == 0) break;
    remainder <<= 1;
  }
  std::uint64_t significand = quotient >> 1;
  if ((quotient & 1) != 0 && (remainder != 0 || (significand & 1) != 0)) ++significand;
  // The leading one adds 1 to the exponent field; a denormal has none to add. Rounding up can
  // carry into it, as far as infinity.
  const int field = missing > 0 ? 0 : leading + F::kBias - 1;
  return static_cast<typename F::Bits>((static_cast<std::uint64_t>(field) << F::kFraction) +
                                       significand);
}

template <typename F>
typename F::Bits decode_bits(std::uint8_t byte, int shift, const Scale& scale) {
  const typename F::Bits sign = (byte & kSign) != 0 ? F::kSignBit : 0;
  if (byte == kZero) return 0;
  if (byte == kNan) return F::kQuietNan;
  const bool infinite = (byte & kFlag) != 0;
  return static_cast<typename F::Bits>(
      sign |
      (infinite ? F::kInfinity : product_bits<F>((byte & 0x3F) + kMinExponent + shift, scale)));
}

}  // namespace

std::uint8_t encode(float value, int shift, std::uint64_t fraction, Tally& tally) {
  return encode_bits<Binary32>(std::bit_cast<std::uint32_t>(value), shift, fraction, tally);
}

std::uint8_t encode(double value, int shift, std::uint64_t fraction, Tally& tally) {
  return encode_bits<Binary64>(std::bit_cast<std::uint64_t>(value), shift, fraction, tally);
}

std::uint8_t encode_float16(std::uint16_t bits, int shift, std::uint64_t fraction, Tally& tally) {
  return encode_bits<Binary16>(bits, shift, fraction, tally);
}

std::uint8_t encode_bfloat16(std::uint16_t bits, int shift, std::uint64_t fraction, Tally& tally) {
  return encode_bits<Bfloat16>(bits, shift, fraction, tally);
}

std::uint8_t recompress(std::int64_t sum, std::uint64_t fraction, Tally& tally) {
  if (sum == 0) {
    ++tally.zeros;
    return kZero;
  }
  const std::uint64_t magnitude =
      sum < 0 ? 0 - static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);
  const std::uint8_t sign = sum < 0 ? kSign : std::uint8_t{0};
  return round_magnitude(magnitude, 0, fraction, tally) | sign;
}

float decode_float(std::uint8_t byte, int shift, std::uint32_t divisor) {
  return std::bit_cast<float>(decode_bits<Binary32>(byte, shift, {1, divisor}));
}

double decode_double(std::uint8_t byte, int shift, std::uint32_t divisor) {
  return std::bit_cast<double>(decode_bits<Binary64>(byte, shift, {1, divisor}));
}

std::uint16_t decode_float16(std::uint8_t byte, int shift, std::uint32_t divisor) {
  return decode_bits<Binary16>(byte, shift, {1, divisor});
}

std::uint16_t decode_bfloat16(std::uint8_t byte, int shift, std::uint32_t divisor) {
  return decode_bits<Bfloat16>(byte, shift, {1, divisor});
}

float decode_float(std::uint8_t byte, int shift, const Scale& scale) {
  return std::bit_cast<float>(decode_bits<Binary32>(byte, shift, scale));
}

double decode_double(std::uint8_t byte, int shift, const Scale& scale) {
  return std::bit_cast<double>(decode_bits<Binary64>(byte, shift, scale));
}

std::uint16_t decode_float16(std::uint8_t byte, int shift, const Scale& scale) {
  return decode_bits<Binary16>(byte, shift, scale);
}

std::uint16_t decode_bfloat16(std::uint8_t byte, int shift, const Scale& scale) {
  return decode_bits<Bfloat16>(byte, shift, scale);
}

}  // namespace natagg::nat8
