// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/congestion_window.hpp"

#include <gtest/gtest.h>

namespace natagg::worker {
namespace {

constexpr Time kBase = 100'000;  // ns
constexpr std::size_t kLimit = 256;
constexpr std::size_t kChunk = 4096;  // so that 128 KiB are 32 chunks

class CongestionWindowTest : public testing::Test {
 protected:
  /// One round in which every chunk of the window is under way and takes `rtt`.
  void round(Time rtt, Time base = kBase) { round_of(window.size(), rtt, base); }

  void round_of(std::size_t chunks, Time rtt, Time base = kBase) {
    window.on_round_trip(rtt, base, sent_, sent_ + chunks);
    sent_ += chunks;
    now += rtt;
  }

  CongestionWindow window{kLimit, kChunk};
  Time now = 1'000'000'000;

 private:
  std::uint64_t sent_ = 0;
};

TEST_F(CongestionWindowTest, DoublesEachRoundUpToItsLimitWhereNothingWaits) {
  EXPECT_EQ(window.size(), 16U);
  for (const std::size_t size : {32U, 64U, 128U, 256U, 256U}) {
    round(kBase);
    EXPECT_EQ(window.size(), size);
  }
}

TEST_F(CongestionWindowTest, ShrinksByAnEighthARoundDownTo128KiBWhereRoundTripsHaveDoubled) {
  for (int i = 0; i < 4; ++i) round(kBase);
  round(2 * kBase + 1);
  EXPECT_EQ(window.size(), 224U);
  for (int i = 0; i < 50; ++i) round(10 * kBase);
  EXPECT_EQ(window.size(), 32U);
}

TEST_F(CongestionWindowTest, StaysBetweenOneAndAHalfAndTwiceTheBase) {
  for (int i = 0; i < 4; ++i) round(kBase);
  round(3 * kBase);
  const std::size_t size = window.size();
  for (int i = 0; i < 10; ++i) round(kBase * 7 / 4);
  EXPECT_EQ(window.size(), size);
  round(kBase);
  EXPECT_EQ(window.size(), size + size / 4 > kLimit ? kLimit : size + size / 4);
}

TEST_F(CongestionWindowTest, TheAverageRoundTripOfARoundCounts) {
  for (int i = 0; i < 4; ++i) round(kBase);
  window.on_round_trip(kBase, kBase, 0, 1);  // of an earlier round, which is not over
  round(kBase * 29 / 10);
  EXPECT_EQ(window.size(), kLimit);
  window.on_round_trip(kBase, kBase, 0, 1);
  round(kBase * 31 / 10);
  EXPECT_EQ(window.size(), kLimit - kLimit / 8);
}

TEST_F(CongestionWindowTest, DoesNotGrowWhileItIsNotUsed) {
  for (int i = 0; i < 10; ++i) round_of(2, kBase);
  EXPECT_EQ(window.size(), 16U);
}

TEST_F(CongestionWindowTest, TakesAThirdForLossAndAFifthForAMarkOnceARoundTripDownToFour) {
  for (int i = 0; i < 4; ++i) round(kBase);
  window.on_loss(now, kBase);
  window.on_loss(now + kBase - 1, kBase);
  window.on_mark(now + kBase - 1, kBase);
  EXPECT_EQ(window.size(), 171U);
  window.on_mark(now + kBase, kBase);
  EXPECT_EQ(window.size(), 137U);
  for (int i = 2; i < 40; ++i) window.on_loss(now + i * kBase, kBase);
  EXPECT_EQ(window.size(), 4U);
}

TEST_F(CongestionWindowTest, GrowsByOneARoundBelow128KiBWhereItHasLostAndQueuesStand) {
  for (int i = 0; i < 10; ++i) window.on_loss(now += kBase, kBase);
  EXPECT_EQ(window.size(), 4U);
  round(5 * kBase);
  EXPECT_EQ(window.size(), 5U);
}

TEST(CongestionWindow, NeverExceedsASmallLimit) {
  for (const std::size_t limit : {1U, 2U, 8U, 16U}) {
    CongestionWindow window(limit, 8'876);
    EXPECT_EQ(window.size(), limit);
    window.on_round_trip(kBase, kBase, 0, limit);
    EXPECT_EQ(window.size(), limit);
    window.on_loss(1'000'000'000, kBase);
    EXPECT_GE(window.size(), std::min<std::size_t>(limit, 4));
  }
}

}  // namespace
}  // namespace natagg::worker
