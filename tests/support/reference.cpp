// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "support/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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

}  // namespace

std::uint8_t encode(float value, int shift, std::uint64_t fraction) {
  if (std::isnan(value)) return nat8::kNan;
  const bool negative = std::signbit(value);
  if (std::isinf(value)) return negative ? nat8::kNegativeInf : nat8::kPositiveInf;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const int biased = static_cast<int>(bits >> 23 & 0xFF);
  std::uint32_t magnitude = bits & 0x7F'FFFF;
  if (biased != 0) magnitude |= 0x80'0000;
  const int exponent = std::max(biased, 1) - 150;  // |value| = magnitude * 2^exponent
  return with_sign(round_to_byte(magnitude, exponent - nat8::kMinExponent - shift, fraction),
                   negative);
}

float decode(std::uint8_t byte, int shift, std::uint32_t divisor) {
  if (byte == nat8::kZero) return 0.0F;
  if (byte == nat8::kNan) return std::numeric_limits<float>::quiet_NaN();
  const float sign = (byte & nat8::kSign) != 0 ? -1.0F : 1.0F;
  if ((byte & nat8::kFlag) != 0) return sign * std::numeric_limits<float>::infinity();
  // A correctly rounded quotient, then an exact scaling: no code is near the denormals.
  const float quotient = sign / static_cast<float>(divisor);
  return std::ldexp(quotient, (byte & 0x3F) + nat8::kMinExponent + shift);
}

std::uint8_t reduce(std::span<const std::uint8_t> bytes, const Terms& terms,
                    std::uint64_t element) {
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
  const proto::RoundingKey key{terms.seed, terms.operation, proto::kAggregatorRank, terms.rounding};
  const auto magnitude = static_cast<Uint128>(sum < 0 ? -sum : sum);
  return with_sign(round_to_byte(magnitude, 0, proto::rounding_fraction(key, element)), sum < 0);
}

std::vector<float> all_reduce(std::span<const std::vector<float>> inputs, const Terms& terms) {
  const auto world = static_cast<std::uint32_t>(inputs.size());
  const std::uint32_t divisor = terms.reduction == proto::Reduction::kAverage ? world : 1;
  std::vector<float> result(inputs[0].size());
  std::vector<std::uint8_t> bytes(world);
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      const proto::RoundingKey key{terms.seed, terms.operation, rank, terms.rounding};
      bytes[rank] = encode(inputs[rank][i], terms.shift, proto::rounding_fraction(key, i));
    }
    result[i] = decode(reduce(bytes, terms, i), terms.shift, divisor);
  }
  return result;
}

}  // namespace natagg::reference
