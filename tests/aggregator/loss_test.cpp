// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Which contributions a shard finds lost.
#include "aggregator/core/loss_watch.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "aggregator/shard_fixture.hpp"

namespace natagg::test {
namespace {

using aggregator::LossWatch;
using aggregator::Lost;
using aggregator::SlotTable;

constexpr std::uint16_t kSlots = 128;
constexpr std::uint16_t kRanks = 2;

class LossWatchTest : public testing::Test {
 protected:
  /// `rank` contributes to that chunk; what is found lost then.
  std::optional<Lost> send(std::uint16_t rank, std::uint32_t number) {
    const std::uint32_t sequence = kFirst + number;
    if (slots.locate(sequence) == SlotTable::Position::kNext) slots.open(sequence, {}, rank);
    nat8::Tally tally;
    slots.contribute(sequence, rank, {}, {}, tally);
    return watch.contributed(slots, rank, sequence);
  }

  void send_without_loss(std::uint16_t rank, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t number = first; number <= last; ++number) {
      EXPECT_FALSE(send(rank, number)) << number;
    }
  }

  static void expect_lost(const std::optional<Lost>& lost, std::uint32_t first,
                          std::uint64_t lacking) {
    ASSERT_TRUE(lost);
    EXPECT_EQ(lost->first, kFirst + first);
    EXPECT_EQ(lost->lacking, lacking);
  }

  SlotTable slots{kSlots, proto::kMinValues, kRanks, kFirst, {}, default_kernels(), false};
  LossWatch watch{kRanks, kFirst};
};

TEST_F(LossWatchTest, NothingIsLostThatComesInOrderBeyondTheWindowAndTheWrap) {
  for (std::uint32_t number = 0; number < 3 * kSlots; ++number) {
    EXPECT_FALSE(send(0, number));
    EXPECT_FALSE(send(1, number));
  }
}

TEST_F(LossWatchTest, AChunkThatThreeLaterOnesOvertakeIsLostAndToldOfOnce) {
  send_without_loss(0, 0, 4);
  send_without_loss(0, 6, 7);
  expect_lost(send(0, 8), 5, 1);
  send_without_loss(0, 9, 20);
}

TEST_F(LossWatchTest, TwoThatAreMerelyOvertakenAreNotLost) {
  send_without_loss(0, 2, 2);
  send_without_loss(0, 0, 1);
  send_without_loss(0, 3, 20);
}

TEST_F(LossWatchTest, OneRanksLossIsNotTheOthers) {
  send_without_loss(1, 0, 10);
  send_without_loss(0, 0, 0);
  send_without_loss(0, 3, 3);
  expect_lost(send(0, 4), 1, 1);
  expect_lost(send(0, 5), 2, 1);
  EXPECT_FALSE(watch.repeated(slots, 1));
}

TEST_F(LossWatchTest, ABurstIsToldOfAtOnceUpToSixtyFourChunks) {
  expect_lost(send(0, 100), 0, ~std::uint64_t{0});
  expect_lost(send(0, 101), 64, (std::uint64_t{1} << 35) - 1);
  expect_lost(send(0, 102), 99, 1);
  send_without_loss(0, 103, 110);
}

TEST_F(LossWatchTest, GapsWithinABurstAreLeftOut) {
  send_without_loss(0, 2, 2);
  expect_lost(send(0, 10), 0, 0b1111'1011);
}

TEST_F(LossWatchTest, ARankThatRepeatsItselfIsToldAgain) {
  expect_lost(send(0, 10), 0, 0b1111'1111);
  send_without_loss(0, 0, 6);
  const std::optional<Lost> again = watch.repeated(slots, 0);
  expect_lost(again, 7, 1);
}

TEST_F(LossWatchTest, MarksOfCongestionAreToldOfOnceInEightChunks) {
  int told = 0;
  for (std::uint32_t number = 0; number < 80; ++number) {
    told += watch.tells_of_congestion(0, kFirst + number) ? 1 : 0;
  }
  EXPECT_EQ(told, 10);
  EXPECT_FALSE(watch.tells_of_congestion(0, kFirst + 60)) << "of a chunk that was sent again";
  EXPECT_FALSE(watch.tells_of_congestion(0, kFirst + 79));
  EXPECT_TRUE(watch.tells_of_congestion(1, kFirst + 79));
}

TEST_F(LossWatchTest, WhatEveryRankHasSentIsNeverLost) {
  send_without_loss(0, 0, kSlots - 1);
  send_without_loss(1, 0, kSlots - 1);
  EXPECT_FALSE(watch.repeated(slots, 0));
  // All of the next window but its last is missing; of the one before it nothing is.
  expect_lost(send(0, 2 * kSlots - 1), kSlots, ~std::uint64_t{0});
}

}  // namespace
}  // namespace natagg::test
