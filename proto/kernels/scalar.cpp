// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The reference, one element at a time.

#include <array>
#include <bit>

#include "proto/kernels/implementations.hpp"
#include "proto/kernels/reference.hpp"

namespace natagg {
namespace {

/// Calls `round` with the element's fraction and returns its byte; draws the lower 48 bits only
/// where they can matter. `round` must be pure.
template <typename Round>
std::uint8_t round_with(proto::RoundingFractions& fractions, std::uint64_t element,
                        const Round& round, nat8::Tally& tally) {
  const proto::RoundingKey& key = fractions.key();
  if (key.mode == proto::Rounding::kNearest) return round(std::uint64_t{1} << 63, tally);
  constexpr std::uint64_t kFineMask = 0xFFFF'FFFF'FFFF;
  const std::uint64_t low = std::uint64_t{fractions.coarse(element)} << 48;
  nat8::Tally tally_low;
  nat8::Tally tally_high;
  const std::uint8_t byte = round(low, tally_low);
  if (byte != round(low | kFineMask, tally_high)) {
    return round(low | proto::random_fine(key, element), tally);
  }
  tally += tally_low;
  return byte;
}

template <typename Element, std::uint8_t (*kEncode)(Element, int, std::uint64_t, nat8::Tally&)>
void encode(const Element* in, std::uint8_t* out, std::size_t count, std::uint64_t first,
            const proto::RoundingKey& key, int shift, nat8::Tally& tally) {
  proto::RoundingFractions fractions(key);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = round_with(
        fractions, first + i,
        [&](std::uint64_t fraction, nat8::Tally& t) { return kEncode(in[i], shift, fraction, t); },
        tally);
  }
}

void recompress(const std::int64_t* slot, std::uint8_t* out, std::size_t count, std::uint64_t first,
                const proto::RoundingKey& key, nat8::Tally& tally) {
  proto::RoundingFractions fractions(key);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = round_with(
        fractions, first + i,
        [&](std::uint64_t fraction, nat8::Tally& t) {
          return nat8::recompress(slot[i], fraction, t);
        },
        tally);
  }
}

/// Divides once for each byte value that occurs.
template <typename Element, Element (*kDecode)(std::uint8_t, int, std::uint32_t)>
void decode(const std::uint8_t* in, Element* out, std::size_t count, int shift,
            std::uint32_t divisor) {
  std::array<bool, 256> known{};
  std::array<Element, 256> values;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t byte = in[i];
    if (!known[byte]) {
      values[byte] = kDecode(byte, shift, divisor);
      known[byte] = true;
    }
    out[i] = values[byte];
  }
}

Scan scan(const std::uint8_t* in, std::size_t count) {
  Scan result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t byte = in[i];
    const auto code = static_cast<std::uint8_t>(byte & 0x3F);
    if ((byte & nat8::kFlag) == 0 && code > result.largest_code) result.largest_code = code;
    result.any_special |= nat8::is_special(byte);
    result.malformed |= !nat8::is_valid(byte);
  }
  return result;
}

void store(const std::uint8_t* in, std::int64_t* slot, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) slot[i] = nat8::addend(in[i]);
}

void accumulate(const std::uint8_t* in, std::int64_t* slot, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) slot[i] += nat8::addend(in[i]);
}

void accumulate_wide(const std::uint8_t* in, std::int64_t* slot, std::int16_t* carry,
                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t addend = nat8::addend(in[i]);
    const auto before = static_cast<std::uint64_t>(slot[i]);
    const std::uint64_t after = before + static_cast<std::uint64_t>(addend);
    slot[i] = static_cast<std::int64_t>(after);
    const int carry_out = (after < before ? 1 : 0) - (addend < 0 ? 1 : 0);
    carry[i] = static_cast<std::int16_t>(carry[i] + carry_out);
  }
}

}  // namespace

std::uint8_t reference_sum(std::int64_t sum, int /*shift*/, std::uint64_t fraction,
                           nat8::Tally& tally) {
  return nat8::recompress(sum, fraction, tally);
}

std::uint64_t whole_fraction(const proto::RoundingKey& key, std::uint64_t element,
                             std::uint16_t coarse) {
  if (key.mode == proto::Rounding::kNearest) return std::uint64_t{1} << 63;
  return std::uint64_t{coarse} << 48 | proto::random_fine(key, element);
}

bool quotients_are_normal(int shift, std::uint32_t divisor) {
  const int width = std::bit_width(divisor - 1);
  return nat8::kMinExponent + shift - width >= -126;
}

std::uint32_t odd_quotient(int shift, std::uint32_t divisor) {
  // 2^exponent / divisor = 2^(exponent - width) (2^width / divisor), and the latter is in [1, 2).
  const int width = std::bit_width(divisor - 1);
  const std::uint64_t dividend = std::uint64_t{1} << (width + 23);
  const std::uint64_t significand = dividend / divisor | (dividend % divisor != 0 ? 1 : 0);
  const int field = nat8::kMinExponent + shift - width + 127 - 1;  // the leading one adds 1
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(field) << 23) + significand);
}

constinit const Kernels kScalarKernels = {
    .name = "scalar",
    .supported = scalar_supported,
    .encode_f32 = encode<float, nat8::encode>,
    .encode_f64 = encode<double, nat8::encode>,
    .encode_f16 = encode<std::uint16_t, nat8::encode_float16>,
    .encode_bf16 = encode<std::uint16_t, nat8::encode_bfloat16>,
    .decode_f32 = decode<float, nat8::decode_float>,
    .decode_f64 = decode<double, nat8::decode_double>,
    .decode_f16 = decode<std::uint16_t, nat8::decode_float16>,
    .decode_bf16 = decode<std::uint16_t, nat8::decode_bfloat16>,
    .stream_f32 = decode<float, nat8::decode_float>,
    .scan = scan,
    .store = store,
    .accumulate = accumulate,
    .accumulate_wide = accumulate_wide,
    .recompress = recompress,
};

}  // namespace natagg
