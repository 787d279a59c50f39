// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The reference itself, on values small enough to follow by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "proto/nat8.hpp"
#include "support/reference.hpp"

namespace natagg::reference {
namespace {

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Reference, EncodesPowersOfTwoExactlyWhateverTheFraction) {
  EXPECT_EQ(encode(1.0F, 0, 0), 50);
  EXPECT_EQ(encode(1.0F, 0, UINT64_MAX), 50);
  EXPECT_EQ(encode(-0.25F, 0, UINT64_MAX), nat8::kSign | 48);
  EXPECT_EQ(encode(1.0F, -3, 0), 53);
}

TEST(Reference, RoundsUpExactlyWhenMantissaAndFractionReachOne) {
  EXPECT_EQ(encode(1.25F, 0, 3 * (kHalf / 2) - 1), 50);
  EXPECT_EQ(encode(1.25F, 0, 3 * (kHalf / 2)), 51);
  EXPECT_EQ(encode(1.5F, 0, kHalf), 51);
}

TEST(Reference, RoundsBelowTheSmallestCodeToItOrToZero) {
  EXPECT_EQ(encode(0x1p-51F, 0, kHalf), 0);
  EXPECT_EQ(encode(-0x1p-51F, 0, kHalf), nat8::kSign);
  EXPECT_EQ(encode(-0x1p-51F, 0, kHalf - 1), nat8::kZero);
  EXPECT_EQ(encode(-0.0F, 0, UINT64_MAX), nat8::kZero);
  EXPECT_EQ(encode(0x1p-149F, 0, UINT64_MAX), nat8::kZero);
}

TEST(Reference, ClipsAboveTheLargestCode) {
  EXPECT_EQ(encode(1024.0F, 0, 0), 60);
  EXPECT_EQ(encode(1025.0F, 0, UINT64_MAX), 60);
  EXPECT_EQ(encode(-3e38F, 0, 0), nat8::kSign | 60);
}

TEST(Reference, SumsBeyondInt64Exactly) {
  const Terms terms{.rounding = proto::Rounding::kNearest};
  std::vector<std::uint8_t> bytes(9, 60);
  EXPECT_EQ(reduce(bytes, terms, 0), 60);
  bytes.insert(bytes.end(), 9, nat8::kSign | 60);
  bytes.push_back(7);
  EXPECT_EQ(reduce(bytes, terms, 0), 7);
}

TEST(Reference, LetsNanWinAndOppositeInfinitiesBecomeNan) {
  const Terms terms;
  EXPECT_EQ(reduce(std::vector<std::uint8_t>{50, nat8::kNan, nat8::kPositiveInf}, terms, 0),
            nat8::kNan);
  EXPECT_EQ(reduce(std::vector<std::uint8_t>{nat8::kNegativeInf, nat8::kPositiveInf}, terms, 0),
            nat8::kNan);
  EXPECT_EQ(reduce(std::vector<std::uint8_t>{nat8::kNegativeInf, 60}, terms, 0),
            nat8::kNegativeInf);
}

TEST(Reference, AveragesOverTheRanks) {
  const std::vector<std::vector<float>> inputs(3, {1.0F, kInf, std::nanf("")});
  const std::vector<float> result = all_reduce(
      inputs, {.rounding = proto::Rounding::kNearest, .reduction = proto::Reduction::kAverage});
  EXPECT_EQ(result[0], 4.0F / 3.0F);  // 3 is half-way between 2 and 4, and goes away from zero
  EXPECT_EQ(result[1], kInf);
  EXPECT_TRUE(std::isnan(result[2]));
}

}  // namespace
}  // namespace natagg::reference
