// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The scalar reference against the definition.

#include "proto/nat8.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "oracle.hpp"

namespace natagg::nat8 {
namespace {

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
constexpr std::uint64_t kAlmostOne = ~std::uint64_t{0};

std::uint8_t byte_of(float value, int shift, std::uint64_t fraction) {
  Tally tally;
  return encode(value, shift, fraction, tally);
}

std::uint8_t byte_of_sum(std::int64_t sum, std::uint64_t fraction) {
  Tally tally;
  return recompress(sum, fraction, tally);
}

Tally tally_of(float value, std::uint64_t fraction) {
  Tally tally;
  static_cast<void>(encode(value, 0, fraction, tally));
  return tally;
}

TEST(Nat8, PowersOfTwoStayUnchangedWhateverTheFraction) {
  for (int exponent = kMinExponent; exponent <= kMaxExponent; ++exponent) {
    const float value = std::ldexp(1.0F, exponent);
    for (const std::uint64_t fraction : {std::uint64_t{0}, kHalf, kAlmostOne}) {
      EXPECT_EQ(byte_of(value, 0, fraction), exponent + 50);
      EXPECT_EQ(byte_of(-value, 0, fraction), (exponent + 50) | kSign);
    }
  }
}

TEST(Nat8, RoundsUpExactlyWhenTheFractionReachesWhatIsMissing) {
  // 1.75: f = 3/4, so R >= 1/4 goes up.
  const std::uint64_t quarter = std::uint64_t{1} << 62;
  EXPECT_EQ(byte_of(1.75F, 0, quarter - 1), 50);
  EXPECT_EQ(byte_of(1.75F, 0, quarter), 51);
}

TEST(Nat8, NearestTiesGoAwayFromZero) {
  EXPECT_EQ(byte_of(1.5F, 0, kHalf), 51);
  EXPECT_EQ(byte_of(-1.5F, 0, kHalf), 51 | kSign);
  EXPECT_EQ(byte_of(std::nextafter(1.5F, 0.0F), 0, kHalf), 50);
}

TEST(Nat8, RoundsTheLargestValueUpIntoTheTopCode) {
  const float below = std::nextafter(1024.0F, 0.0F);
  EXPECT_EQ(byte_of(below, 0, kAlmostOne), 60);
  EXPECT_EQ(byte_of(below, 0, 0), 59);
  EXPECT_EQ(tally_of(below, kAlmostOne), Tally{});
}

TEST(Nat8, ClipsWhatIsAboveTheLargestCodeAndCountsIt) {
  EXPECT_EQ(byte_of(1024.0F, 0, kAlmostOne), 60);
  EXPECT_EQ(tally_of(1024.0F, kAlmostOne), Tally{});
  for (const float value :
       {std::nextafter(1024.0F, 2048.0F), 4096.0F, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(byte_of(value, 0, kAlmostOne), 60);
    EXPECT_EQ(byte_of(-value, 0, 0), 60 | kSign);
    EXPECT_EQ(tally_of(value, 0), Tally{.clipped = 1});
  }
}

TEST(Nat8, RoundsBelowTheSmallestCodeToItOrToZero) {
  const float value = std::ldexp(0.75F, kMinExponent);
  const std::uint64_t quarter = std::uint64_t{1} << 62;
  EXPECT_EQ(byte_of(value, 0, quarter), 0);
  EXPECT_EQ(byte_of(-value, 0, quarter), kSign);
  EXPECT_EQ(tally_of(value, quarter), Tally{});
  EXPECT_EQ(byte_of(value, 0, quarter - 1), kZero);
  EXPECT_EQ(byte_of(-value, 0, quarter - 1), kZero) << "a zero has no sign";
  EXPECT_EQ(tally_of(value, quarter - 1), Tally{.flushed = 1});
}

TEST(Nat8, ZerosOfEitherSignAreZeroAndNotFlushed) {
  EXPECT_EQ(byte_of(0.0F, 0, kAlmostOne), kZero);
  EXPECT_EQ(byte_of(-0.0F, 0, kAlmostOne), kZero);
  EXPECT_EQ(tally_of(-0.0F, kAlmostOne), Tally{.zeros = 1});
}

TEST(Nat8, DenormalsAreFarBelowTheSmallestCodeAndStillUnbiased) {
  // 2^-126 - 2^-149 under shift -64: u = 2^-12 - 2^-35.
  const float denormal = std::nextafter(std::numeric_limits<float>::min(), 0.0F);
  const std::uint64_t u = (std::uint64_t{1} << 52) - (std::uint64_t{1} << 29);
  EXPECT_EQ(byte_of(denormal, -64, 0 - u), 0);
  EXPECT_EQ(byte_of(denormal, -64, 0 - u - 1), kZero);
}

TEST(Nat8, InfinityAndEveryNanSurvive) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(byte_of(infinity, 0, 0), kPositiveInf);
  EXPECT_EQ(byte_of(-infinity, 0, 0), kNegativeInf);
  EXPECT_EQ(tally_of(infinity, 0), Tally{.infs = 1});
  for (const std::uint32_t bits : {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0xFF800001U, 0x7FFFFFFFU,
                                   0xFFFFFFFFU, 0x7FA5A5A5U}) {
    EXPECT_EQ(byte_of(std::bit_cast<float>(bits), 0, kAlmostOne), kNan) << std::hex << bits;
    EXPECT_EQ(tally_of(std::bit_cast<float>(bits), kAlmostOne), Tally{.nans = 1});
  }
}

TEST(Nat8, EncodesRandomFloatsAndDoublesAsDefined) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const int shift = static_cast<int>(random() % 129) - 64;
    const std::uint64_t fraction = random();
    const auto wide = std::bit_cast<double>(random());
    // Half of the values near the window of codes.
    const int exponent = static_cast<int>(random() % 70) - 55 + shift;
    const double value =
        i % 2 == 0 ? wide : std::ldexp(1 + static_cast<double>(random() >> 12) * 0x1p-52, exponent);
    Tally tally;
    EXPECT_EQ(encode(value, shift, fraction, tally), oracle::encode(value, shift, fraction).byte)
        << value << " shift " << shift << " fraction " << fraction;
    EXPECT_EQ(tally, oracle::encode(value, shift, fraction).tally);

    const auto narrow = i % 2 == 0 ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                                   : static_cast<float>(value);
    tally = {};
    EXPECT_EQ(encode(narrow, shift, fraction, tally),
              oracle::encode(double{narrow}, shift, fraction).byte)
        << narrow << " shift " << shift << " fraction " << fraction;
    EXPECT_EQ(tally, oracle::encode(double{narrow}, shift, fraction).tally);
  }
}

TEST(Nat8, RecompressesSumsAroundEveryPowerOfTwoAsDefined) {
  std::mt19937_64 random(2);
  for (int power = 0; power < 64; ++power) {
    for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
      const auto sum = static_cast<std::int64_t>((std::uint64_t{1} << power) + offset);
      const auto negative = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(sum));
      for (int i = 0; i < 20; ++i) {
        const std::uint64_t fraction =
            i < 3 ? kHalf * static_cast<unsigned>(i) - (i == 2) : random();
        for (const std::int64_t s : {sum, negative}) {
          Tally tally;
          EXPECT_EQ(recompress(s, fraction, tally), oracle::recompress(s, fraction).byte) << s;
          EXPECT_EQ(tally, oracle::recompress(s, fraction).tally) << s;
        }
      }
    }
  }
}

TEST(Nat8, RecompressesTiesAwayFromZeroAndWhatIsJustBelowThemDown) {
  for (int power = 1; power < 60; ++power) {
    const std::int64_t tie = std::int64_t{3} << (power - 1);
    EXPECT_EQ(byte_of_sum(tie, kHalf), power + 1);
    EXPECT_EQ(byte_of_sum(-tie, kHalf), (power + 1) | kSign);
    EXPECT_EQ(byte_of_sum(tie - 1, kHalf), power);
    EXPECT_EQ(byte_of_sum(1 - tie, kHalf), power | kSign);
  }
}

TEST(Nat8, RecompressesSumsUpToTheEndsOfInt64) {
  EXPECT_EQ(byte_of_sum(std::numeric_limits<std::int64_t>::max(), kAlmostOne), 60);
  EXPECT_EQ(byte_of_sum(std::numeric_limits<std::int64_t>::min(), 0), 60 | kSign);
  const std::int64_t largest = std::int64_t{1} << 60;
  EXPECT_EQ(byte_of_sum(largest - 1, 0), 59);
  EXPECT_EQ(byte_of_sum(largest - 1, std::uint64_t{32}), 60) << "1 - f is 2^-59";
  EXPECT_EQ(byte_of_sum(largest - 1, std::uint64_t{31}), 59);
}

TEST(Nat8, AddendsAreTheValuesInUnitsOfTheSmallestCode) {
  EXPECT_EQ(addend(0), 1);
  EXPECT_EQ(addend(kSign), -1);
  EXPECT_EQ(addend(60), std::int64_t{1} << 60);
  EXPECT_EQ(addend(60 | kSign), -(std::int64_t{1} << 60));
  for (const std::uint8_t byte : {kZero, kPositiveInf, kNegativeInf, kNan}) {
    EXPECT_EQ(addend(byte), 0);
  }
}

TEST(Nat8, ExactlyThe126DefinedBytesAreValid) {
  int valid = 0;
  for (int byte = 0; byte < 256; ++byte) valid += is_valid(static_cast<std::uint8_t>(byte));
  EXPECT_EQ(valid, 2 * 61 + 4);
  for (const int byte : {0xC0, 0xC2, 61, 62, 63, 61 | 0x80, 63 | 0x80, 0x43, 0x7F, 0xFF}) {
    EXPECT_FALSE(is_valid(static_cast<std::uint8_t>(byte))) << byte;
  }
}

TEST(Nat8, DecodesEveryByteExactlyWithoutADivisor) {
  for (const int shift : {-64, -1, 0, 13, 64}) {
    for (int code = 0; code <= 60; ++code) {
      const auto byte = static_cast<std::uint8_t>(code);
      EXPECT_EQ(decode_float(byte, shift, 1), std::ldexp(1.0F, code - 50 + shift));
      EXPECT_EQ(decode_double(byte | kSign, shift, 1), -std::ldexp(1.0, code - 50 + shift));
    }
  }
  EXPECT_EQ(std::bit_cast<std::uint32_t>(decode_float(kZero, 0, 1)), 0U);
  EXPECT_EQ(decode_float(kPositiveInf, 0, 3), std::numeric_limits<float>::infinity());
  EXPECT_EQ(decode_double(kNegativeInf, 0, 3), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(std::bit_cast<std::uint32_t>(decode_float(kNan, 0, 3)), 0x7FC00000U);
}

TEST(Nat8, QuotientsAreRoundedToNearestEvenEvenAmongDenormals) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) {
    const auto divisor = static_cast<std::uint32_t>(random() >> (32 + random() % 32));
    if (divisor == 0) continue;
    const int shift = i % 4 == 0 ? -64 : static_cast<int>(random() % 129) - 64;
    const auto byte = static_cast<std::uint8_t>(i % 8 == 0 ? 0 : random() % 61);
    const int exponent = byte - 50 + shift;
    const auto check = [&](double quotient, const oracle::FloatFormat& format) {
      EXPECT_TRUE(oracle::is_rounded_quotient(quotient, exponent, divisor, format))
          << int{byte} << " shift " << shift << " / " << divisor << " to " << format.precision;
    };
    check(double{decode_float(byte, shift, divisor)}, oracle::kFloat32);
    check(decode_double(byte, shift, divisor), oracle::kFloat64);
    check(oracle::from_float16(decode_float16(byte, shift, divisor)), oracle::kFloat16);
    check(oracle::from_bfloat16(decode_bfloat16(byte, shift, divisor)), oracle::kBfloat16);
  }
}

/// The sum of m of n ranks stands for all: it is multiplied with n / m and rounded once.
TEST(Nat8, ScaledValuesAreRoundedOnceToNearestEvenEvenAmongDenormals) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 100'000; ++i) {
    const Scale scale{.multiplier = static_cast<std::uint32_t>(1 + random() % 512),
                      .divisor = static_cast<std::uint32_t>(1 + random() % 512)};
    const int shift = i % 4 == 0 ? -64 : static_cast<int>(random() % 129) - 64;
    const auto byte = static_cast<std::uint8_t>(i % 8 == 0 ? 0 : random() % 61);
    const auto check = [&](double product, const oracle::FloatFormat& format) {
      EXPECT_TRUE(oracle::is_rounded_quotient(product, byte - 50 + shift, scale.divisor, format,
                                              scale.multiplier))
          << int{byte} << " shift " << shift << " * " << scale.multiplier << " / " << scale.divisor
          << " to " << format.precision;
    };
    check(double{decode_float(byte, shift, scale)}, oracle::kFloat32);
    check(decode_double(byte, shift, scale), oracle::kFloat64);
    check(oracle::from_float16(decode_float16(byte, shift, scale)), oracle::kFloat16);
    check(oracle::from_bfloat16(decode_bfloat16(byte, shift, scale)), oracle::kBfloat16);
  }
  EXPECT_EQ(decode_float(50, 0, {4, 3}), 4.0F / 3.0F);
  EXPECT_EQ(decode_float(50 | kSign, 0, {4, 2}), -2.0F);
  EXPECT_EQ(decode_float16(60, 5, {512, 1}), 0x7C00);
  EXPECT_EQ(decode_double(kNegativeInf, 0, {3, 2}), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(std::bit_cast<std::uint32_t>(decode_float(kZero, 0, {3, 2})), 0U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(decode_float(kNan, 0, {3, 2})), 0x7FC00000U);
}

TEST(Nat8, ShortFormatsOverflowToInfinityAndUnderflowToDenormalsAndZero) {
  EXPECT_EQ(decode_float16(60, 5, 1), 0x7800) << "2^15";
  EXPECT_EQ(decode_float16(60, 6, 1), 0x7C00) << "2^16";
  EXPECT_EQ(decode_float16(60 | kSign, 6, 1), 0xFC00);
  EXPECT_EQ(decode_float16(26, 0, 1), 0x0001) << "2^-24";
  EXPECT_EQ(decode_float16(25, 0, 1), 0x0000) << "2^-25 is half of the smallest: to even";
  EXPECT_EQ(decode_float16(27, 0, 3), 0x0001) << "2^-23 / 3 is 0.67 of the smallest";
  EXPECT_EQ(decode_float16(kNan, 0, 7), 0x7E00);
  EXPECT_EQ(decode_bfloat16(kNan, 0, 7), 0x7FC0);
  EXPECT_EQ(decode_bfloat16(kNegativeInf, 0, 7), 0xFF80);
  EXPECT_EQ(decode_bfloat16(kZero, 0, 7), 0x0000);
}

TEST(Nat8, EncodesEveryFloat16AndBfloat16AsDefined) {
  std::mt19937_64 random(4);
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    for (const int shift : {0, static_cast<int>(random() % 129) - 64}) {
      const std::uint64_t fraction = random();
      Tally tally;
      oracle::Outcome expected = oracle::encode(oracle::from_float16(half), shift, fraction);
      EXPECT_EQ(encode_float16(half, shift, fraction, tally), expected.byte) << half;
      EXPECT_EQ(tally, expected.tally) << half;
      tally = {};
      expected = oracle::encode(oracle::from_bfloat16(half), shift, fraction);
      EXPECT_EQ(encode_bfloat16(half, shift, fraction, tally), expected.byte) << half;
      EXPECT_EQ(tally, expected.tally) << half;
    }
  }
}

}  // namespace
}  // namespace natagg::nat8
