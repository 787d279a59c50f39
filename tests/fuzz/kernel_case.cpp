// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "kernel_case.hpp"

#include <algorithm>

#include "input.hpp"
#include "proto/nat8.hpp"
#include "proto/splitmix.hpp"

namespace natagg::fuzz {
namespace {

/// The `width` upper bits of the least f with f + R >= 1, or of one just beside it.
std::uint64_t aimed(std::uint64_t fraction, int width, std::uint64_t random) {
  if (width == 0) return 0;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width);
  return (((0 - fraction) >> (64 - width)) + random % 4 - 1) & mask;
}

/// The lowest three bits of the random number of an element without anything special.
constexpr std::uint64_t kPlain = 5;

struct Format {
  int bits;
  int fraction;
  int bias;
};

std::uint64_t shaped_float(const Format& format, const Case& c, std::uint64_t element,
                           std::uint64_t random) {
  const std::uint64_t mask = (std::uint64_t{1} << format.fraction) - 1;
  const int most = (1 << (format.bits - 1 - format.fraction)) - 1;  // the field of infinity
  const int smallest = format.bias + nat8::kMinExponent + c.shift;
  const auto pick = static_cast<int>(random >> 32 & 0xFF);
  std::uint64_t fraction = random >> 8;
  int field = smallest - 3 + pick % 66;
  switch (random % 8) {
    case 0:
      field = 0;
      fraction = pick % 3 == 0 ? 0 : fraction >> (pick % 40);
      break;
    case 1:
      field = most;
      fraction = pick % 3 == 0 ? 0 : fraction;
      break;
    case 2:
      field = smallest + 60;
      fraction = pick % 3;
      break;
    case 3:
      field = smallest + (pick % 2 == 0 ? -1 : 59);
      fraction = ~std::uint64_t{0};
      break;
    case 4: field = smallest - pick % 70; break;
    case kPlain: field = smallest + pick % 60; break;
    default:
      fraction = aimed(rounding_fraction(c.key, element), format.fraction, random >> 8);
      break;
  }
  field = std::clamp(field, 0, most);
  return random >> 63 << (format.bits - 1) | static_cast<std::uint64_t>(field) << format.fraction |
         (fraction & mask);
}

std::uint64_t shaped_sum(const Case& c, std::uint64_t element, std::uint64_t random) {
  const auto power = static_cast<int>(random >> 32 & 0x3F);
  std::uint64_t sum = std::uint64_t{1} << power;
  switch (random % 4) {
    case 0: sum += random >> 8 & 3; break;
    case 2: sum -= random >> 8 & 3; break;
    case kPlain % 4: sum |= random & (sum - 1); break;
    default: sum |= aimed(rounding_fraction(c.key, element), power, random >> 8); break;
  }
  return random >> 63 == 0 ? sum : 0 - sum;
}

std::uint64_t shaped(const Case& c, std::uint64_t element, bool edges, std::uint64_t random) {
  // Without edges, values that kernels are fast on, and here and there one that they are not.
  if (!edges && random % 64 != 0) random = (random & ~std::uint64_t{7}) | kPlain;
  switch (c.target) {
    case Target::kEncodeF32: return shaped_float({32, 23, 127}, c, element, random);
    case Target::kEncodeF64: return shaped_float({64, 52, 1023}, c, element, random);
    case Target::kEncodeF16: return shaped_float({16, 10, 15}, c, element, random);
    case Target::kEncodeBf16: return shaped_float({16, 7, 127}, c, element, random);
    default: return shaped_sum(c, element, random);
  }
}

std::uint8_t valid_byte(std::uint64_t random, bool specials) {
  constexpr std::uint8_t kOthers[] = {nat8::kZero, nat8::kPositiveInf, nat8::kNegativeInf,
                                      nat8::kNan};
  const std::uint64_t place = random % (2 * (nat8::kMaxCode + 1) + (specials ? 8 : 0));
  if (place >= 2 * (nat8::kMaxCode + 1)) return kOthers[place % 4];
  return static_cast<std::uint8_t>(place / 2 | (place % 2) << 7);
}

bool takes_elements(Target target) {
  return target <= Target::kRecompress || target >= Target::kAccumulate;
}

bool takes_bytes(Target target) {
  return target >= Target::kDecodeF32;
}

}  // namespace

void parse(std::span<const std::uint8_t> input, Case& result) {
  Input reader(input);
  result.target = static_cast<Target>(reader.take(1) % kTargets);
  const std::uint64_t flags = reader.take(1);
  result.key.mode = (flags & 1) != 0 ? proto::Rounding::kNearest : proto::Rounding::kStochastic;
  const bool shape = (flags & 2) != 0;
  const bool edges = (flags & 4) != 0;
  const std::uint64_t length = reader.take(2);
  result.count = length % (kMaxCount + 1) >> (length >> 14);  // short ones more often
  result.in_offset = reader.take(1) % 64;
  result.out_offset = reader.take(1) % 64;
  result.shift = static_cast<int>(reader.take(1) % (2 * nat8::kMaxShift + 1)) - nat8::kMaxShift;
  // Anywhere in the first two random groups, or near where the Philox counter's words wrap.
  const std::uint64_t place = reader.take(2) % (2 * proto::kRandomGroup);
  constexpr std::uint64_t kBases[] = {0, std::uint64_t{1} << 31, std::uint64_t{1} << 32,
                                      std::uint64_t{1} << 39};
  result.first = (flags >> 3 & 1) == 0 ? place : kBases[flags >> 4 & 3] + place - 128;
  if (result.first >> 56 != 0) result.first = place;
  result.divisor = std::max(static_cast<std::uint32_t>(reader.take(4)) >> (flags >> 3), 1U);
  result.key.seed = reader.take(8);
  result.key.operation = static_cast<std::uint32_t>(reader.take(4));
  result.key.who = static_cast<std::uint16_t>(reader.take(2));

  const std::span<const std::uint8_t> data = reader.rest();
  std::size_t at = 0;
  std::uint64_t raw = 0;
  for (std::size_t i = 0; i < result.count; ++i) {
    for (std::size_t j = 0; j < 8 && !data.empty(); ++j) {
      raw = raw << 8 | data[at];
      if (++at == data.size()) at = 0;
    }
    const std::uint64_t random = proto::mix(raw + 0x9E37'79B9'7F4A'7C15 * (i + 1));
    if (takes_bytes(result.target)) {
      result.byte[i] = result.target == Target::kScan && !shape
                           ? static_cast<std::uint8_t>(raw)
                           : valid_byte(shape ? random : raw, edges);
    }
    if (takes_elements(result.target)) {
      result.element[i] = shape ? shaped(result, result.first + i, edges, random) : raw;
    }
    result.carry[i] = static_cast<std::int16_t>(random >> 40 & 0xFF);
  }
}

}  // namespace natagg::fuzz
