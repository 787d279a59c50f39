// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Chunks that are answered without ranks that are late: when, with what, and what becomes of late
// packets.
#include <gtest/gtest.h>

#include "partial_fixture.hpp"

namespace natagg::test {
namespace {

using proto::AbortBody;
using proto::JoinBody;
using proto::RefuseBody;
using proto::RefuseReason;
using proto::WelcomeBody;

TEST_F(PartialTest, AChunkThatIsOldEnoughIsAnsweredToAllWithTheRanksThatAreThere) {
  start();
  chunk(0, 0, kOne);
  chunk(2, 0, kOne);
  now += kDeadline - 1;
  EXPECT_TRUE(tick().empty());
  now += 1;
  expect_partial(tick(), 3, kTwo, 0b101);
  EXPECT_EQ(count(Counter::kPartialResults), 1U);
  EXPECT_EQ(count(Counter::kResults), 1U);
  EXPECT_EQ(shard.usage().open_slots, 0U);
  EXPECT_TRUE(pass_deadline().empty());
}

TEST_F(PartialTest, LessThanAQuorumWaitsOnAndThenIsAnsweredAtOnce) {
  start();
  chunk(1, 0, kOne);
  EXPECT_TRUE(pass_deadline().empty());
  expect_partial(chunk(0, 0, kOne), 3, kTwo, 0b011);
}

TEST_F(PartialTest, NothingIsPartialBeforeEveryRankHasShownThatItKnowsTheSession) {
  epoch_ = join_all(terms());
  chunk(0, 0, kOne);
  chunk(1, 0, kOne);
  EXPECT_TRUE(pass_deadline().empty());
  heartbeat(2);
  expect_partial(tick(), 3, kTwo, 0b011);
}

TEST_F(PartialTest, AChunkWithAllRanksIsAnOrdinaryResult) {
  start();
  chunk(0, 0, kOne);
  chunk(1, 0, kOne);
  const auto results = chunk(2, 0, kTwo);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].header.type, Type::kResult);
  EXPECT_EQ(results[0].values(), std::vector{kFour});
  EXPECT_TRUE(pass_deadline().empty());
  EXPECT_EQ(count(Counter::kPartialResults), 0U);
}

TEST_F(PartialTest, OperationsThatDoNotAskForItAreNeverPartial) {
  start();
  chunk(0, 0, kOne, proto::Reduction::kSum);
  chunk(1, 0, kOne, proto::Reduction::kSum);
  chunk(0, 1, kOne, proto::Reduction::kAverage);
  chunk(1, 1, kOne, proto::Reduction::kAverage);
  EXPECT_TRUE(pass_deadline().empty());
  EXPECT_EQ(chunk(2, 0, kOne, proto::Reduction::kSum)[0].header.type, Type::kResult);
}

TEST_F(PartialTest, AJobWithoutADeadlineWaitsForAllWhateverTheOperationSays) {
  epoch_ = join_all({.world = 3});
  chunk(0, 0, kOne);
  chunk(1, 0, kOne);
  EXPECT_TRUE(pass_deadline().empty());
  EXPECT_EQ(chunk(2, 0, kTwo)[0].header.type, Type::kResult);
}

TEST_F(PartialTest, ALateContributionIsCountedAndAnsweredAndNeverAdded) {
  start();
  chunk(0, 0, kOne);
  chunk(1, 0, kOne);
  pass_deadline();
  for (int repetition = 0; repetition < 3; ++repetition) {
    const auto answer = chunk(2, 0, kFour);
    expect_partial(answer, 1, kTwo, 0b011);
    EXPECT_EQ(answer[0].to.endpoint, peer_of(2).endpoint);
  }
  EXPECT_EQ(count(Counter::kLateContributions), 3U);
  EXPECT_EQ(count(Counter::kCachedResults), 3U);
  EXPECT_EQ(count(Counter::kContributions), 2U);
  expect_partial(chunk(0, 0, kOne), 1, kTwo, 0b011);
}

TEST_F(PartialTest, ALateContributionToAnotherOperationIsAMismatch) {
  start();
  chunk(0, 0, kOne);
  chunk(1, 0, kOne);
  pass_deadline();
  const auto aborts = chunk(2, 0, kOne, proto::Reduction::kPartialAverage);
  ASSERT_EQ(aborts.size(), 3U);
  EXPECT_EQ(aborts[0].header.type, Type::kAbort);
  EXPECT_EQ(aborts[0].body<AbortBody>().reason, proto::AbortReason::kMismatch);
  EXPECT_EQ(aborts[0].body<AbortBody>().rank.value(), 2);
}

TEST_F(PartialTest, ARankWhosePacketWasLostComesWithTheNextOneOfTheSlot) {
  start();
  chunk(0, 0, kOne);
  chunk(1, 0, kOne);
  pass_deadline();
  // Rank 2 has the result by multicast; that it sends the next says so.
  expect_lost_alone(chunk(2, kWindow, kOne), 1);
  EXPECT_EQ(count(Counter::kHeldBack), 0U);
  EXPECT_EQ(shard.usage().open_slots, 1U);
}

TEST_F(PartialTest, EachOverdueChunkOfAWindowIsAnsweredInItsTurn) {
  start();
  for (std::uint32_t number = 0; number < kWindow; ++number) {
    chunk(0, number, kOne);
    chunk(1, number, kOne);
    now += kMs;
  }
  chunk(2, 1, kOne);
  now += kDeadline - kWindow * kMs;
  expect_partial(tick(), 3, kTwo, 0b011);
  now += kMs;
  EXPECT_TRUE(tick().empty()) << "chunk 1 has all ranks";
  now += kMs;
  expect_partial(tick(), 3, kTwo, 0b011);
  now += kMs;
  expect_partial(tick(), 3, kTwo, 0b011);
}

TEST_F(PartialTest, TheShardsOwnPauseMakesNobodyLate) {
  start();
  tick();
  chunk(0, 0, kOne);
  chunk(1, 0, kOne);
  now += 1000 * kMs;
  EXPECT_TRUE(tick().empty());
  EXPECT_EQ(chunk(2, 0, kTwo)[0].header.type, Type::kResult);
}

TEST_F(PartialTest, InfinitiesAndNansOfThoseWhoAreThereSurvive) {
  start();
  chunk(0, 0, nat8::kPositiveInf);
  chunk(1, 0, kOne);
  const auto packets = pass_deadline();
  expect_partial(packets, 3, nat8::kPositiveInf, 0b011);
  EXPECT_NE(packets[0].header.flags & proto::kFlagSpecials, 0);
}

TEST_F(PartialTest, RanksThatDoNotAgreeOnTheDeadlineOrTheQuorumAreRefusedWithBothNumbers) {
  // It is believed when the others are heard again: they are not of a job that has ended.
  const auto refusal = [&](const JoinSpec& spec) {
    join(1, spec);
    now += 50 * kMs;
    join(0, terms());
    const auto answers = join(1, spec);
    EXPECT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].header.type, Type::kRefuse);
    return answers[0].body<RefuseBody>();
  };
  join(0, terms());
  JoinSpec other = terms();
  other.stragglers = 31;
  EXPECT_EQ(refusal(other).reason, RefuseReason::kStragglers);
  EXPECT_EQ(refusal(other).yours.value(), 31U);
  EXPECT_EQ(refusal(other).ours.value(), 30U);
  other = terms();
  other.quorum = 3;
  EXPECT_EQ(refusal(other).reason, RefuseReason::kQuorum);
  EXPECT_EQ(refusal({.world = 3}).reason, RefuseReason::kStragglers);
  other.quorum = 4;
  EXPECT_EQ(refusal(other).reason, RefuseReason::kQuorum);
  EXPECT_EQ(refusal(other).ours.value(), 3U) << "a quorum is at most the world";
}

TEST_F(PartialTest, MoreRanksThanAListHoldsAndPacketsWithoutRoomForItAreRefused) {
  ShardConfig large = config();
  large.max_workers = 1000;
  shard = Shard(large);
  JoinSpec spec = terms();
  spec.world = 513;
  EXPECT_TRUE(join(0, spec).empty()) << "shorter than the packets it proposes";
  EXPECT_EQ(count(Counter::kUnpadded), 1U);
  Packet packet = join_packet(0, spec);
  packet.resize(proto::partial_datagram_size(kValues, 513, proto::Keys::kNone));
  auto body = give(packet, peer_of(0)).at(0).body<RefuseBody>();
  EXPECT_EQ(body.reason, RefuseReason::kPartialWorld);
  EXPECT_EQ(body.yours.value(), 513U);
  EXPECT_EQ(body.ours.value(), 512U);
  spec.world = 512;
  spec.values = 1408;
  packet = join_packet(0, spec);
  packet.resize(proto::partial_datagram_size(1408, 512, proto::Keys::kNone));
  body = give(packet, peer_of(0)).at(0).body<RefuseBody>();
  EXPECT_EQ(body.reason, RefuseReason::kValues);
  EXPECT_EQ(body.ours.value(), 1280U);
}

class ResumedPartialTest : public PartialTest {
 protected:
  /// Rank 0 has the results of chunks 0 and 2, the others none.
  void resume() {
    const std::uint64_t members = [&] {
      Shard other(config());
      std::swap(shard, other);
      std::vector<Sent> last;
      for (std::uint16_t rank = 0; rank < 3; ++rank) last = join(rank, terms());
      std::swap(shard, other);
      return last.back().body<WelcomeBody>().members.value();
    }();
    std::vector<Sent> last;
    for (std::uint16_t rank = 0; rank < 3; ++rank) {
      Packet packet = join_packet(rank, terms());
      auto body = proto::read_body<JoinBody>(packet);
      body.members = Be64{members};
      body.resume = Be32{rank == 0 ? kFirst + 1 : kFirst};
      body.held = Be32{rank == 0 ? 2U : 0U};
      std::memcpy(packet.data() + sizeof(Header), &body, sizeof(body));
      last = give(packet, peer_of(rank));
    }
    ASSERT_EQ(last.back().body<WelcomeBody>().state, proto::SessionState::kReady);
    ASSERT_EQ(last.back().body<WelcomeBody>().first_sequence.value(), kFirst);
    epoch_ = last.back().header.epoch.value();
    heartbeat(0);
  }

  std::vector<Sent> known(std::uint16_t rank, std::uint32_t number, std::uint8_t value,
                          std::uint8_t ranks) {
    Header header = data_header({.rank = rank,
                                 .chunk = number,
                                 .epoch = epoch_,
                                 .reduction = proto::Reduction::kPartialSum});
    header.type = Type::kPartial;
    Packet packet = value_packet(header, std::vector{value});
    packet.push_back(std::byte{ranks});
    return give(packet, peer_of(rank));
  }
};

TEST_F(ResumedPartialTest, WhatARankKnowsToBeTheResultIsTheResult) {
  resume();
  chunk(1, 0, kOne);
  expect_partial(known(0, 0, kFour, 0b101), 3, kFour, 0b101);
  EXPECT_EQ(count(Counter::kKnownResults), 1U);
  expect_partial(chunk(2, 0, kOne), 1, kFour, 0b101);
  // All have come: the slot is free.
  expect_lost_alone(chunk(1, kWindow, kOne), 1);
  EXPECT_EQ(shard.usage().open_slots, 1U);
}

TEST_F(ResumedPartialTest, AChunkThatSomebodyMayHaveTheResultOfWaitsForAllRanks) {
  resume();
  for (const std::uint32_t number : {0U, 1U, 2U, 3U}) {
    chunk(1, number, kOne);
    chunk(2, number, kOne);
  }
  // Nobody can have chunk 3's.
  const auto packets = pass_deadline();
  expect_partial(packets, 3, kTwo, 0b110);
  EXPECT_EQ(packets[0].header.sequence.value(), kFirst + 3);
  expect_partial(known(0, 0, kFour, 0b011), 3, kFour, 0b011);
  const auto results = chunk(0, 1, kTwo);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].header.type, Type::kResult);
}

TEST_F(ResumedPartialTest, NobodyKnowsTheResultOfWhatNobodyHadAnswered) {
  resume();
  EXPECT_TRUE(known(0, 3, kFour, 0b011).empty());
  EXPECT_TRUE(known(0, 0, kFour, 0).empty()) << "of no ranks";
  EXPECT_TRUE(known(0, 0, kFour, 0b1000).empty()) << "of a rank that is none";
  EXPECT_EQ(count(Counter::kBadTerms), 3U);
  EXPECT_EQ(count(Counter::kKnownResults), 0U);
}

TEST_F(PartialTest, AJobThatLostNothingTakesNoResults) {
  start();
  Header header =
      data_header({.rank = 0, .epoch = epoch_, .reduction = proto::Reduction::kPartialSum});
  header.type = Type::kPartial;
  Packet packet = value_packet(header, std::vector{kFour});
  packet.push_back(std::byte{0b011});
  EXPECT_TRUE(give(packet, peer_of(0)).empty());
  EXPECT_EQ(count(Counter::kBadTerms), 1U);
}

}  // namespace
}  // namespace natagg::test
