// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Ranks that are late by many windows, and such as are gone: what is kept for them, how long the
// others wait, and when they go on.
#include <gtest/gtest.h>

#include "aggregator/core/backlog.hpp"
#include "partial_fixture.hpp"

namespace natagg::test {
namespace {

using aggregator::Backlog;
using proto::AbortBody;
using proto::AbortReason;
using proto::PendingBody;

constexpr Time kPatience = 500 * kMs;
// Chunks that can be had without rank 2, which comes to none: each slot holds its latest two.
constexpr std::uint32_t kMost = (proto::kLateWindows + 2) * kWindow;

class BacklogTest : public PartialTest {
 protected:
  /// Ranks 0 and 1 have the results of so many chunks.
  void finish_without_rank_2(std::uint32_t chunks) {
    start();
    for (std::uint32_t i = 0; i < chunks; ++i) {
      ASSERT_TRUE(chunk(0, i, kOne).empty());
      ASSERT_TRUE(chunk(1, i, value_of(i)).empty());
      now += kDeadline;
      heartbeat(2);
      expect_partial(tick(), 3, sum_of(i), 0b011);
    }
  }
  // The nearest to 1 + 1 is 2, and to 1 + 4 it is 4.
  static std::uint8_t value_of(std::uint32_t i) { return i % 2 == 0 ? kOne : kFour; }
  static std::uint8_t sum_of(std::uint32_t i) { return i % 2 == 0 ? kTwo : kFour; }

  /// In steps that are not taken for the shard's own pause; what was sent.
  std::vector<Sent> pass(Time time) {
    std::vector<Sent> all;
    for (const Time end = now + time; now < end;) {
      now += 10 * kMs;
      for (std::uint16_t rank = 0; rank < 3; ++rank) heartbeat(rank);
      const auto some = tick();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  void expect_held(const std::vector<Sent>& packets) {
    ASSERT_EQ(packets.size(), 1U);
    ASSERT_EQ(packets[0].header.type, Type::kPending);
    EXPECT_EQ(packets[0].body<PendingBody>().missing.value(), 2);
    EXPECT_EQ(packets[0].body<PendingBody>().missing_count.value(), 0);
  }

  static void expect_abort(const std::vector<Sent>& packets, std::size_t count, AbortReason reason,
                           std::uint16_t rank) {
    ASSERT_EQ(packets.size(), count);
    for (const Sent& packet : packets) {
      ASSERT_EQ(packet.header.type, Type::kAbort);
      EXPECT_EQ(packet.body<AbortBody>().reason, reason);
      EXPECT_EQ(packet.body<AbortBody>().rank.value(), rank);
    }
  }
};

TEST_F(BacklogTest, ALateRankGetsEachResultThatItsSlotNoLongerHolds) {
  finish_without_rank_2(kMost);
  EXPECT_EQ(count(Counter::kHeldBack), 0U);
  for (std::uint32_t i = 0; i < kMost; ++i) {
    for (int repetition = 0; repetition < 2; ++repetition) {
      const auto answer = chunk(2, i, kTwo);
      expect_partial(answer, 1, sum_of(i), 0b011);
      EXPECT_EQ(answer[0].to.endpoint, peer_of(2).endpoint);
      EXPECT_EQ(answer[0].header.sequence.value(), kFirst + i);
      EXPECT_EQ(answer[0].header.slot.value(), (kFirst + i) % kWindow);
    }
  }
  EXPECT_EQ(count(Counter::kLateContributions), 2 * kMost);
  EXPECT_EQ(count(Counter::kContributions), 2 * kMost) << "nothing late is added";
  // It has come to all, so nothing is kept and the next is an ordinary chunk.
  chunk(0, kMost, kOne);
  chunk(1, kMost, kOne);
  EXPECT_EQ(chunk(2, kMost, kTwo).at(0).header.type, Type::kResult);
  EXPECT_TRUE(chunk(2, 0, kTwo).empty());
  EXPECT_EQ(count(Counter::kStaleSequence), 1U);
}

TEST_F(BacklogTest, ALateContributionToAnotherOperationIsAMismatchWithWhoOpenedTheChunk) {
  finish_without_rank_2(4 * kWindow);
  const auto aborts = chunk(2, 0, kOne, proto::Reduction::kPartialAverage);
  expect_abort(aborts, 3, AbortReason::kMismatch, 2);
  EXPECT_EQ(aborts[0].body<AbortBody>().other_rank.value(), 0);
}

TEST_F(BacklogTest, WhenTheRoomIsUsedUpTheOthersHearWhomTheyWaitFor) {
  finish_without_rank_2(kMost);
  expect_held(chunk(0, kMost, kOne));
  EXPECT_EQ(count(Counter::kHeldBack), 1U);
  EXPECT_EQ(shard.usage().open_slots, 0U);
  // With its second chunk of the slot the rank shows that it needs the first result no more.
  chunk(2, 0, kOne);
  expect_held(chunk(1, kMost, kOne));
  chunk(2, kWindow, kOne);
  EXPECT_TRUE(chunk(0, kMost, kOne).empty());
  EXPECT_EQ(shard.usage().open_slots, 1U);
}

TEST_F(BacklogTest, WhoIsTooLateIsLeftBehindAndTheOthersGoOnAtOnce) {
  finish_without_rank_2(kMost);
  chunk(0, kMost, kOne);
  EXPECT_TRUE(pass(kPatience - 10 * kMs).empty());
  expect_held(chunk(0, kMost, kOne));
  const auto aborts = pass(10 * kMs);
  expect_abort(aborts, 1, AbortReason::kLeftBehind, 2);
  EXPECT_EQ(aborts[0].to.endpoint, peer_of(2).endpoint);
  EXPECT_EQ(count(Counter::kLeftBehind), 1U);
  EXPECT_TRUE(chunk(0, kMost, kOne).empty());
  expect_partial(chunk(1, kMost, kOne), 2, kTwo, 0b011);
  // What it still sends is answered by the reason, to itself.
  expect_abort(chunk(2, 0, kOne), 1, AbortReason::kLeftBehind, 2);
  expect_abort(heartbeat(2), 1, AbortReason::kLeftBehind, 2);
  EXPECT_EQ(count(Counter::kAborts), 0U);
}

TEST_F(BacklogTest, WhoIsNeededForTheQuorumIsWaitedFor) {
  finish_without_rank_2(kMost);
  leave(1);
  expect_held(chunk(0, kMost, kOne));
  EXPECT_TRUE(pass(3 * kPatience).empty());
  expect_held(chunk(0, kMost, kOne));
  EXPECT_EQ(count(Counter::kLeftBehind), 0U);
}

TEST_F(BacklogTest, ThoseWhoAreThereGoOnWithoutARankThatIsGone) {
  start();
  chunk(0, 0, kOne);
  leave(2);
  // The chunk that is open, and those that come, wait for nobody else.
  expect_partial(chunk(1, 0, kOne), 2, kTwo, 0b011);
  for (std::uint32_t number = 1; number <= 2 * kWindow; ++number) {
    chunk(0, number, kOne);
    expect_partial(chunk(1, number, kOne), 2, kTwo, 0b011);
  }
  EXPECT_EQ(count(Counter::kHeldBack), 0U);
  // An operation that needs all ranks needs this one.
  expect_abort(chunk(0, 2 * kWindow + 1, kOne, proto::Reduction::kSum), 2, AbortReason::kMemberLeft,
               2);
}

TEST_F(BacklogTest, ARankThatFellSilentHearsThatItIsGoneWhenItIsBack) {
  start();
  for (int i = 0; i < 16; ++i) {
    now += 100 * kMs;
    heartbeat(0);
    heartbeat(1);
    tick();
  }
  EXPECT_EQ(count(Counter::kSilentMembers), 1U);
  chunk(0, 0, kOne);
  expect_partial(chunk(1, 0, kOne), 2, kTwo, 0b011);
  expect_abort(heartbeat(2), 1, AbortReason::kMemberSilent, 2);
  expect_abort(chunk(2, 0, kOne), 1, AbortReason::kMemberSilent, 2);
}

TEST_F(BacklogTest, AnOpenChunkEndsTheSessionWhenItNeedsARankThatIsGone) {
  start();
  chunk(0, 0, kOne, proto::Reduction::kSum);
  const auto packets = leave(2);
  ASSERT_EQ(packets.size(), 3U) << "the echo of LEAVE, and ABORT to those who remain";
  EXPECT_EQ(packets[1].header.type, Type::kAbort);
  EXPECT_EQ(packets[1].body<AbortBody>().rank.value(), 2);
}

TEST_F(BacklogTest, LessThanAQuorumCannotGoOn) {
  start();
  leave(2);
  leave(1);
  expect_abort(chunk(0, 0, kOne), 1, AbortReason::kMemberLeft, 2);
}

TEST_F(BacklogTest, TheShardsOwnPauseLeavesNobodyBehind) {
  finish_without_rank_2(kMost);
  chunk(0, kMost, kOne);
  now += 10 * kPatience;
  EXPECT_TRUE(tick().empty());
  EXPECT_TRUE(pass(kPatience - 10 * kMs).empty());
  expect_abort(pass(10 * kMs), 1, AbortReason::kLeftBehind, 2);
}

/// Keeps the result of a chunk of one of two slots for rank 1 of two.
void keep_for_rank_1(Backlog& backlog, std::uint32_t sequence) {
  const std::vector<std::uint8_t> bytes = {kOne};
  const std::uint64_t came = 0b01;
  backlog.keep(sequence, {.chunk = {.count = 1}, .bytes = bytes}, {&came, 1});
}

/// With no room for another of the slot of `first`.
Backlog full_backlog(Time deadline, std::uint32_t first) {
  Backlog backlog(2, kValues, 2, deadline);
  for (std::uint32_t i = 0; i < proto::kLateWindows; ++i) keep_for_rank_1(backlog, first + 2 * i);
  return backlog;
}

TEST(Backlog, KeepsForEachSlotOverTheWrapAndForgetsWhatNobodyNeeds) {
  constexpr std::uint32_t first = 0xFFFF'FFFC;
  Backlog backlog = full_backlog(kMs, first);
  EXPECT_FALSE(backlog.has_room(first));
  EXPECT_TRUE(backlog.has_room(first + 1)) << "another slot";
  EXPECT_TRUE(backlog.find(first));
  EXPECT_TRUE(backlog.find(first + 2 * (proto::kLateWindows - 1)));
  EXPECT_FALSE(backlog.find(first - 2));
  EXPECT_FALSE(backlog.find(first + 2 * proto::kLateWindows));
  EXPECT_FALSE(backlog.find(first + 1));
  backlog.came(first + 2, 0);
  EXPECT_TRUE(backlog.find(first)) << "it is the other who needs it";
  backlog.came(first + 6, 1);
  EXPECT_FALSE(backlog.find(first + 4));
  EXPECT_TRUE(backlog.find(first + 6));
  EXPECT_TRUE(backlog.has_room(first));
  backlog.excuse(1);
  EXPECT_TRUE(backlog.empty());
}

TEST(Backlog, LeavesBehindWhoDoesNotComeAWindowFurtherForEachDeadline) {
  constexpr std::uint32_t full = proto::kLateWindows;
  for (const auto& [deadline, windows] : {std::pair{kMs, full}, std::pair{100 * kMs, 5U},
                                          std::pair{kPatience, 1U}, std::pair{2 * kPatience, 1U}}) {
    const Time patience = std::max(deadline, kPatience);
    for (const bool fast_enough : {false, true}) {
      Backlog backlog = full_backlog(deadline, 0);
      EXPECT_EQ(backlog.hold(2 * (full + 2), 0), 1);
      EXPECT_FALSE(backlog.take_late(patience - 1));
      backlog.came(2 * (fast_enough ? windows : windows - 1), 1);
      // The others have gone on, and wait again.
      for (std::uint32_t i = full; backlog.has_room(0); ++i) keep_for_rank_1(backlog, 2 * i);
      EXPECT_EQ(backlog.take_late(patience).has_value(), !fast_enough) << deadline;
    }
  }
}

TEST(Backlog, WaitsForNobodyWhenThereIsRoomAgain) {
  Backlog backlog = full_backlog(kMs, 0);
  backlog.hold(2 * (proto::kLateWindows + 2), 0);
  backlog.came(2, 1);
  EXPECT_FALSE(backlog.take_late(kPatience));
  // A later wait begins anew.
  keep_for_rank_1(backlog, 2 * proto::kLateWindows);
  backlog.hold(2 * (proto::kLateWindows + 3), 10 * kPatience);
  EXPECT_FALSE(backlog.take_late(11 * kPatience - 1));
  EXPECT_EQ(backlog.take_late(11 * kPatience), std::optional<std::uint16_t>(1));
}

}  // namespace
}  // namespace natagg::test
