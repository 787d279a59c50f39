// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "oracle.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace natagg::oracle {
namespace {

static_assert(LDBL_MANT_DIG >= 64, "a slot's sum and a 64-bit fraction must fit");

/// `u` > 0 in units of code 0.
Outcome round(long double u, bool negative, std::uint64_t fraction) {
  // x + R >= 1 exactly when x >= 1 - R, which is a multiple of 2^-64 and so exact.
  const long double threshold =
      fraction == 0 ? 1.0L : std::ldexp(static_cast<long double>(0 - fraction), -64);
  Outcome outcome;
  int code = 0;
  if (u < 1) {
    if (u < threshold) {
      outcome.byte = 0x40;
      outcome.tally.flushed = 1;
      return outcome;
    }
  } else if (u > std::ldexp(1.0L, 60)) {
    outcome.tally.clipped = 1;
    code = 60;
  } else {
    const long double mantissa = 2 * std::frexp(u, &code);
    code += mantissa - 1 >= threshold ? 0 : -1;
  }
  outcome.byte = static_cast<std::uint8_t>(code | (negative ? 0x80 : 0));
  return outcome;
}

struct Product {
  std::uint64_t high;
  std::uint64_t low;
};

Product multiply(std::uint64_t constant, std::uint64_t word) {
  return {constant * word / 0x1'0000'0000, constant * word % 0x1'0000'0000};
}

struct Block {
  std::uint64_t word[4];
};

Block philox7(Block c, std::uint64_t seed) {
  std::uint64_t key0 = seed % 0x1'0000'0000;
  std::uint64_t key1 = seed / 0x1'0000'0000;
  for (int round = 0; round < 7; ++round) {
    const Product a = multiply(0xD2511F53, c.word[0]);
    const Product b = multiply(0xCD9E8D57, c.word[2]);
    c = {{b.high ^ c.word[1] ^ key0, b.low, a.high ^ c.word[3] ^ key1, a.low}};
    key0 = (key0 + 0x9E3779B9) % 0x1'0000'0000;
    key1 = (key1 + 0xBB67AE85) % 0x1'0000'0000;
  }
  return c;
}

}  // namespace

Outcome encode(double value, int shift, std::uint64_t fraction) {
  Outcome outcome;
  if (std::isnan(value)) {
    outcome = {.byte = 0x42, .tally = {.nans = 1}};
  } else if (std::isinf(value)) {
    outcome = {.byte = static_cast<std::uint8_t>(value < 0 ? 0xC1 : 0x41), .tally = {.infs = 1}};
  } else if (value == 0) {
    outcome = {.byte = 0x40, .tally = {.zeros = 1}};
  } else {
    outcome = round(std::ldexp(std::fabs(static_cast<long double>(value)), 50 - shift), value < 0,
                    fraction);
  }
  return outcome;
}

Outcome recompress(std::int64_t sum, std::uint64_t fraction) {
  if (sum == 0) return {.byte = 0x40, .tally = {.zeros = 1}};
  return round(std::fabs(static_cast<long double>(sum)), sum < 0, fraction);
}

bool is_rounded_quotient(double quotient, int exponent, std::uint32_t divisor,
                         const FloatFormat& format, std::uint32_t multiplier) {
  const long double dividend = std::ldexp(static_cast<long double>(multiplier), exponent);
  const long double wide_divisor = divisor;
  if (std::isinf(quotient)) {
    // Half a last place beyond the largest finite number, or more.
    const long double limit = 2 - std::ldexp(1.0L, -format.precision);
    return dividend >= std::ldexp(limit, format.max_exponent) * wide_divisor;
  }
  const int smallest_place = format.min_exponent - format.precision + 1;
  if (quotient == 0) return dividend <= std::ldexp(wide_divisor, smallest_place - 1);
  // With the quotient an integer times its own last place: |integer * divisor - multiplier * 2^n|
  // <= divisor/2, both sides times a power of two where n is negative.
  const int last_place = std::max(std::ilogb(quotient) - format.precision + 1, smallest_place);
  const double integer = std::ldexp(quotient, -last_place);
  if (integer != std::floor(integer)) return false;
  __extension__ using Wide = __int128;
  const int n = exponent - last_place;
  const int scale = n < 0 ? -n : 0;
  const Wide product = (static_cast<Wide>(integer) * divisor) << scale;
  const Wide twice_error = 2 * (product - (Wide{multiplier} << (n + scale)));
  const Wide distance = twice_error < 0 ? -twice_error : twice_error;
  const Wide bound = static_cast<Wide>(divisor) << scale;
  return distance < bound || (distance == bound && std::fmod(integer, 2) == 0);
}

double from_float16(std::uint16_t bits) {
  const int field = bits / 1024 % 32;
  const int fraction = bits % 1024;
  double magnitude = 0;
  if (field == 31) {
    magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (field == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, field - 25);
  }
  return bits >= 0x8000 ? -magnitude : magnitude;
}

double from_bfloat16(std::uint16_t bits) {
  const int field = bits / 128 % 256;
  const int fraction = bits % 128;
  double magnitude = 0;
  if (field == 255) {
    magnitude = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (field == 0) {
    magnitude = std::ldexp(fraction, -133);
  } else {
    magnitude = std::ldexp(128 + fraction, field - 134);
  }
  return bits >= 0x8000 ? -magnitude : magnitude;
}

std::uint64_t fraction(std::uint64_t seed, std::uint32_t operation, std::uint16_t who,
                       std::uint64_t element) {
  // Row v of this lane is in the sum of rows that x^(v - 1) mod x^7 + x + 1 names, over row 0.
  const std::uint64_t lane = element % 16;
  const auto drawn = [&](std::uint64_t row) {
    const std::uint64_t number = row * 16 + lane;
    const std::uint64_t block = element / 2048 * 16 + number / 8;
    const Block words =
        philox7({{block % 0x1'0000'0000, block / 0x1'0000'0000, operation, who}}, seed);
    const std::uint64_t word = words.word[number % 8 / 2];
    return number % 2 == 0 ? word % 0x1'0000 : word / 0x1'0000;
  };
  unsigned power = 0;
  for (std::uint64_t v = 1; v <= element % 2048 / 16; ++v) {
    power = power == 0 ? 1 : power * 2;
    if (power >= 128) power ^= 128 + 2 + 1;
  }
  std::uint64_t upper = drawn(0);
  for (unsigned i = 0; i < 7; ++i) {
    if (power / (1U << i) % 2 == 1) upper ^= drawn(i + 1) ^ drawn(0);
  }
  const Block fine = philox7(
      {{element % 0x1'0000'0000, element / 0x1'0000'0000, operation, 0x1'0000ULL + who}}, seed);
  const std::uint64_t lower = fine.word[0] + fine.word[1] % 0x1'0000 * 0x1'0000'0000;
  return upper * 0x1'0000'0000'0000 + lower;
}

}  // namespace natagg::oracle
