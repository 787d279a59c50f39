// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "support/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <vector>

#include "proto/nat8.hpp"
#include "proto/packet.hpp"

namespace natagg::reference {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

constexpr Uint128 kOne = Uint128{1} << 64;  // 1 as a binary fraction of 64 bits

int top_bit(Uint128 value) {
  const auto high = static_cast<std::uint64_t>(value >> 64);
  if (high != 0) return 127 - std::countl_zero(high);
  return 63 - std::countl_zero(static_cast<std::uint64_t>(value));
}

/// Rounds u = magnitude * 2^scale to 0 or 2^code and returns the byte, without sign.
std::uint8_t round_to_byte(Uint128 magnitude, int scale, std::uint64_t fraction) {
  if (magnitude == 0) return nat8::kZero;
  const int top = top_bit(magnitude);
  const int exponent = top + scale;
  if (exponent > nat8::kMaxCode) return nat8::kMaxCode;
  if (exponent >= 0) {
    const Uint128 mantissa = magnitude - (Uint128{1} << top);
    const bool up = (mantissa << (64 - top)) + fraction >= kOne;
    return static_cast<std::uint8_t>(std::min(exponent + (up ? 1 : 0), nat8::kMaxCode));
  }
  // u < 1. Its bits below 2^-64 cannot matter, since `fraction` has none there.
  const int place = 64 + scale;
  Uint128 u = 0;
  if (place >= 0) {
    u = magnitude << place;
  } else if (place > -128) {
    u = magnitude >> -place;
  }
  return u + fraction >= kOne ? std::uint8_t{0} : nat8::kZero;
}

std::uint8_t with_sign(std::uint8_t byte, bool negative) {
  if (byte == nat8::kZero || !negative) return byte;
  return static_cast<std::uint8_t>(byte | nat8::kSign);
}

/// A 16-bit format: a sign, an exponent field, and the fraction below the leading one.
struct Format {
  int fraction_bits;
  int bias;
};

template <Value T>
constexpr Format kFormat{};
template <>
constexpr Format kFormat<Float16>{.fraction_bits = 10, .bias = 15};
template <>
constexpr Format kFormat<Bfloat16>{.fraction_bits = 7, .bias = 127};

double from_bits(std::uint16_t bits, const Format& format) {
  const int largest = 2 * format.bias + 1;
  const int field = (bits & 0x7FFF) >> format.fraction_bits;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (field == largest) return sign * (fraction == 0 ? HUGE_VAL : std::nan(""));
  const int leading = field == 0 ? 0 : 1 << format.fraction_bits;
  return sign *
         std::ldexp(leading + fraction, std::max(field, 1) - format.bias - format.fraction_bits);
}

/// In the default rounding mode, to nearest even.
std::uint16_t to_bits(double value, const Format& format) {
  const int infinity = (2 * format.bias + 1) << format.fraction_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | infinity >> 1);
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (value == 0 || std::isinf(value)) {
    return static_cast<std::uint16_t>(sign | (value == 0 ? 0 : infinity));
  }
  // In units of the last place: up to 2^(fraction_bits + 1), whose upper bit counts into the field.
  const int exponent = std::max(std::ilogb(value), 1 - format.bias);
  const double places =
      std::nearbyint(std::ldexp(std::abs(value), format.fraction_bits - exponent));
  const int field = std::min(exponent + format.bias - 1, 2 * format.bias);
  const int bits = (field << format.fraction_bits) + static_cast<int>(places);
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

}  // namespace

std::uint8_t encode(double value, int shift, std::uint64_t fraction) {
  if (std::isnan(value)) return nat8::kNan;
  const bool negative = std::signbit(value);
  if (std::isinf(value)) return negative ? nat8::kNegativeInf : nat8::kPositiveInf;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int biased = static_cast<int>(bits >> 52 & 0x7FF);
  std::uint64_t magnitude = bits & 0xF'FFFF'FFFF'FFFF;
  if (biased != 0) magnitude |= std::uint64_t{1} << 52;
  const int exponent = std::max(biased, 1) - 1075;  // |value| = magnitude * 2^exponent
  return with_sign(round_to_byte(magnitude, exponent - nat8::kMinExponent - shift, fraction),
                   negative);
}

double decode(std::uint8_t byte, int shift, std::uint32_t divisor) {
  if (byte == nat8::kZero) return 0.0;
  if (byte == nat8::kNan) return std::numeric_limits<double>::quiet_NaN();
  const double sign = (byte & nat8::kSign) != 0 ? -1.0 : 1.0;
  if ((byte & nat8::kFlag) != 0) return sign * std::numeric_limits<double>::infinity();
  // A correctly rounded quotient, then an exact scaling: no code is near the denormals.
  return std::ldexp(sign / divisor, (byte & 0x3F) + nat8::kMinExponent + shift);
}

namespace {

std::uint8_t reduce_with(std::uint64_t fraction, std::span<const std::uint8_t> bytes) {
  Int128 sum = 0;
  bool nan = false;
  bool positive_inf = false;
  bool negative_inf = false;
  for (const std::uint8_t byte : bytes) {
    nan |= byte == nat8::kNan;
    positive_inf |= byte == nat8::kPositiveInf;
    negative_inf |= byte == nat8::kNegativeInf;
    if ((byte & nat8::kFlag) != 0) continue;
    const Int128 units = Int128{1} << (byte & 0x3F);
    sum += (byte & nat8::kSign) != 0 ? -units : units;
  }
  if (nan || (positive_inf && negative_inf)) return nat8::kNan;
  if (positive_inf) return nat8::kPositiveInf;
  if (negative_inf) return nat8::kNegativeInf;
  const auto magnitude = static_cast<Uint128>(sum < 0 ? -sum : sum);
  return with_sign(round_to_byte(magnitude, 0, fraction), sum < 0);
}

proto::RoundingKey key_of(const Terms& terms, std::uint16_t who) {
  return {terms.seed, terms.operation, who, terms.rounding};
}

}  // namespace

std::uint8_t reduce(std::span<const std::uint8_t> bytes, const Terms& terms,
                    std::uint64_t element) {
  return reduce_with(proto::rounding_fraction(key_of(terms, proto::kAggregatorRank), element),
                     bytes);
}

template <Value T>
double to_double(T value) {
  if constexpr (std::floating_point<T>) {
    return value;
  } else {
    return from_bits(value.bits, kFormat<T>);
  }
}

template <Value T>
T round_to(double value) {
  if constexpr (std::floating_point<T>) {
    return static_cast<T>(value);
  } else {
    return {.bits = to_bits(value, kFormat<T>)};
  }
}

template <Value T>
std::vector<T> all_reduce(const std::vector<std::vector<T>>& inputs, const Terms& terms) {
  const auto world = static_cast<std::uint32_t>(inputs.size());
  const std::uint32_t divisor = proto::is_average(terms.reduction) ? world : 1;
  std::vector<T> result(inputs[0].size());
  std::vector<std::uint8_t> bytes(world);
  std::vector<proto::RoundingFractions> fractions;
  for (std::uint16_t rank = 0; rank < world; ++rank) fractions.emplace_back(key_of(terms, rank));
  proto::RoundingFractions aggregator(key_of(terms, proto::kAggregatorRank));
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      bytes[rank] = encode(to_double(inputs[rank][i]), terms.shift, fractions[rank](i));
    }
    result[i] = round_to<T>(decode(reduce_with(aggregator(i), bytes), terms.shift, divisor));
  }
  return result;
}

std::vector<float> reduce_some(const std::vector<std::vector<float>>& inputs,
                               const std::vector<std::uint16_t>& ranks, const Terms& terms,
                               std::uint64_t first, std::size_t count) {
  std::vector<float> result(count);
  std::vector<std::uint8_t> bytes(ranks.size());
  std::vector<proto::RoundingFractions> fractions;
  for (const std::uint16_t rank : ranks) fractions.emplace_back(key_of(terms, rank));
  proto::RoundingFractions aggregator(key_of(terms, proto::kAggregatorRank));
  // A power of two times a quotient of small integers, which IEEE 754 division rounds once.
  const float multiplier =
      proto::is_average(terms.reduction) ? 1.0F : static_cast<float>(inputs.size());
  const float scale = multiplier / static_cast<float>(ranks.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t element = first + i;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      bytes[k] = encode(double{inputs[ranks[k]][element]}, terms.shift, fractions[k](element));
    }
    const std::uint8_t sum = reduce_with(aggregator(element), bytes);
    result[i] = static_cast<float>(decode(sum, terms.shift, 1)) * scale;
  }
  return result;
}

template double to_double(float);
template double to_double(double);
template double to_double(Float16);
template double to_double(Bfloat16);
template float round_to(double);
template double round_to(double);
template Float16 round_to(double);
template Bfloat16 round_to(double);
template std::vector<float> all_reduce(const std::vector<std::vector<float>>&, const Terms&);
template std::vector<double> all_reduce(const std::vector<std::vector<double>>&, const Terms&);
template std::vector<Float16> all_reduce(const std::vector<std::vector<Float16>>&, const Terms&);
template std::vector<Bfloat16> all_reduce(const std::vector<std::vector<Bfloat16>>&, const Terms&);

}  // namespace natagg::reference
