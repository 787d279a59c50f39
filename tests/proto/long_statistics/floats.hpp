// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Values of a given exponent in each type that workers send, and their encoder.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "proto/kernels.hpp"
#include "report.hpp"

namespace natagg::statistics {

template <typename ElementType, typename BitsType, int kFractionBits, int kExponentBias>
struct FloatType {
  using Element = ElementType;
  using Bits = BitsType;
  static constexpr int kSmallest = 1 - kExponentBias - kFractionBits;  // exponent of a denormal

  std::string_view name;
  Kernels::Encode<Element>* encode;
  std::uint16_t rank;  // who rounds: each type's randomness is its own

  struct Value {
    Element element;
    double f;  // the value is +-2^exponent (1 + f)
  };

  static Value value(int exponent, std::uint64_t random) {
    const int denormal_width = exponent - kSmallest;
    const int width = denormal_width < kFractionBits ? denormal_width : kFractionBits;
    const Bits fraction = width == 0 ? Bits{0} : static_cast<Bits>(random >> 1 >> (63 - width));
    const int field = exponent + kExponentBias;
    const Bits magnitude = field >= 1 ? static_cast<Bits>(Bits(field) << kFractionBits | fraction)
                                      : static_cast<Bits>(Bits{1} << width | fraction);
    const Bits sign = static_cast<Bits>(static_cast<Bits>(random & 1) << (8 * sizeof(Bits) - 1));
    return {std::bit_cast<Element>(static_cast<Bits>(sign | magnitude)),
            static_cast<double>(fraction) / static_cast<double>(std::uint64_t{1} << width)};
  }
};
using Float32 = FloatType<float, std::uint32_t, 23, 127>;
using Float64 = FloatType<double, std::uint64_t, 52, 1023>;
using Float16 = FloatType<std::uint16_t, std::uint16_t, 10, 15>;
using Bfloat16 = FloatType<std::uint16_t, std::uint16_t, 7, 127>;

/// Encodes `count` values of one exponent in pieces, and calls visit(f, negative, byte) for each.
/// Returns what was counted.
template <typename Type, typename Visit>
nat8::Tally encode_values(const Type& type, int exponent, int shift, std::uint64_t count,
                          const proto::RoundingKey& key, const Visit& visit) {
  constexpr std::uint64_t kPiece = 8192;
  Random random(key.seed ^ static_cast<std::uint64_t>(exponent + 1000) << 32 ^ key.operation);
  std::vector<typename Type::Element> elements(kPiece);
  std::vector<double> fractions(kPiece);
  std::vector<std::uint8_t> bytes(kPiece);
  nat8::Tally tally;
  for (std::uint64_t first = 0; first < count; first += kPiece) {
    for (std::size_t i = 0; i < kPiece; ++i) {
      const auto value = Type::value(exponent, random.next());
      elements[i] = value.element;
      fractions[i] = value.f;
    }
    type.encode(elements.data(), bytes.data(), kPiece, first, key, shift, tally);
    for (std::size_t i = 0; i < kPiece; ++i) {
      using Bits = typename Type::Bits;
      const bool negative = (std::bit_cast<Bits>(elements[i]) >> (8 * sizeof(Bits) - 1) & 1) != 0;
      visit(fractions[i], negative, bytes[i]);
    }
  }
  return tally;
}

/// Whole pieces of encode_values().
[[nodiscard]] constexpr std::uint64_t whole_pieces(std::uint64_t values) {
  return (values + 8191) / 8192 * 8192;
}

}  // namespace natagg::statistics
