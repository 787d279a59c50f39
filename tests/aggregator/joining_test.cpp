// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How sessions form, are refused, end and are followed by others.
#include <gtest/gtest.h>

#include "shard_fixture.hpp"

namespace natagg::test {
namespace {

using proto::AbortBody;
using proto::AbortReason;
using proto::LeaveReason;
using proto::RefuseBody;
using proto::RefuseReason;
using proto::SessionState;
using proto::WelcomeBody;

constexpr std::uint8_t kOne = 50;
constexpr Time kRound = 50'000'000;  // between two JOINs of a worker

class JoiningTest : public ShardFixture {
 protected:
  void expect_refused(const std::vector<Sent>& answers, RefuseReason reason, std::uint64_t yours,
                      std::uint64_t ours) {
    ASSERT_EQ(answers.size(), 1U);
    ASSERT_EQ(answers[0].header.type, Type::kRefuse);
    const auto body = answers[0].body<RefuseBody>();
    EXPECT_EQ(body.reason, reason);
    EXPECT_EQ(body.yours.value(), yours);
    EXPECT_EQ(body.ours.value(), ours);
  }

  static Packet control(Type type, std::uint16_t rank, std::uint32_t epoch) {
    Header header = proto::make_header(type);
    header.job = Be32{kJob};
    header.epoch = Be32{epoch};
    header.rank = Be16{rank};
    return control_packet(header);
  }

  static Packet leave(std::uint16_t rank, std::uint32_t epoch,
                      LeaveReason reason = LeaveReason::kClosed,
                      std::uint16_t missing = proto::kAggregatorRank) {
    return leave_over(leave_body(reason, missing), rank, epoch);
  }

  static Packet leave_over(const proto::LeaveBody& body, std::uint16_t rank, std::uint32_t epoch) {
    Header header = proto::make_header(Type::kLeave);
    header.job = Be32{kJob};
    header.epoch = Be32{epoch};
    header.rank = Be16{rank};
    return control_packet(header, body);
  }

  static proto::LeaveBody mismatch(std::uint16_t rank, std::uint16_t other_rank) {
    proto::LeaveBody body = leave_body(LeaveReason::kMismatch, rank);
    body.other_rank = Be16{other_rank};
    body.fingerprint = Be64{proto::fingerprint({.length = 100})};
    body.other_fingerprint = Be64{proto::fingerprint({.length = 101})};
    body.operation = Be32{6};
    body.other_operation = Be32{7};
    return body;
  }
};

TEST_F(JoiningTest, OffersItsShardsInAPacketAsLongAsTheQuestion) {
  Header header = proto::make_header(Type::kHello);
  const proto::HelloBody body{.instance = Be64{9}};
  for (std::size_t length : {60U, 400U, 1472U, 8900U}) {
    const auto answers = give(control_packet(header, body, length), peer_of(0));
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].packet.size(), length);
    const auto offer = answers[0].body<proto::OfferBody>();
    EXPECT_EQ(offer.instance.value(), 9U);
    EXPECT_EQ(offer.shards.value(), 1U);
    EXPECT_EQ(offer.max_values.value(), 1408U);
    EXPECT_EQ(offer.max_window.value(), kWindow);
  }
}

TEST_F(JoiningTest, NeverAnswersAHelloWithMoreBytesThanItHad) {
  const auto answers =
      give(control_packet(proto::make_header(Type::kHello), proto::HelloBody{}), peer_of(0));
  EXPECT_TRUE(answers.empty());
}

TEST_F(JoiningTest, FormsUntilTheLastRankHasJoined) {
  const auto first = join(0, {});
  ASSERT_EQ(first.size(), 1U);
  const auto forming = first[0].body<WelcomeBody>();
  EXPECT_EQ(forming.state, SessionState::kForming);
  EXPECT_EQ(forming.joined.value(), 1U);
  EXPECT_EQ(forming.missing.value(), 1U);
  EXPECT_EQ(forming.instance.value(), 100U);
  EXPECT_EQ(first[0].packet.size(), proto::datagram_size(kValues));

  const auto last = join(1, {});
  ASSERT_EQ(last.size(), 3U);  // to both members, and the answer
  EXPECT_EQ(last[1].body<WelcomeBody>().instance.value(), 0U);
  const auto ready = last[2].body<WelcomeBody>();
  EXPECT_EQ(ready.instance.value(), 101U);
  EXPECT_EQ(ready.state, SessionState::kReady);
  EXPECT_EQ(ready.first_sequence.value(), kFirst);
  EXPECT_EQ(ready.window.value(), kWindow);
  EXPECT_EQ(ready.values.value(), kValues);
  EXPECT_EQ(ready.missing.value(), proto::kAggregatorRank);
  EXPECT_EQ(last[0].header.epoch.value(), first[0].header.epoch.value());
}

TEST_F(JoiningTest, WelcomesAgainAMemberThatMissedIt) {
  const std::uint32_t epoch = join_all({});
  const auto again = join(0, {});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].header.epoch.value(), epoch);
  EXPECT_EQ(again[0].body<WelcomeBody>().state, SessionState::kReady);
  EXPECT_EQ(count(Counter::kSessions), 1U);
}

TEST_F(JoiningTest, AgreesOnTheLeastValuesAndWindowProposed) {
  join(0, {.values = 1408, .window = 4});
  const auto last = join(1, {.values = 256, .window = 2});
  EXPECT_EQ(last[0].body<WelcomeBody>().values.value(), 256U);
  EXPECT_EQ(last[0].body<WelcomeBody>().window.value(), 2U);
}

TEST_F(JoiningTest, RefusesAnotherPinnedNumberOfValuesWithBothNumbers) {
  join(0, {.values = 1408, .flags = proto::kJoinValuesPinned});
  join(1, {.values = 256});
  now += kRound;
  join(0, {.values = 1408, .flags = proto::kJoinValuesPinned});
  expect_refused(join(1, {.values = 256}), RefuseReason::kValues, 256, 1408);
  expect_refused(join(1, {.values = 256, .flags = proto::kJoinValuesPinned}), RefuseReason::kValues,
                 256, 1408);
  EXPECT_EQ(join(1, {.values = 1408})[0].body<WelcomeBody>().state, SessionState::kReady);
}

TEST_F(JoiningTest, RefusesTermsThatDifferFromTheJobs) {
  join(0, {});
  join(1, {.world = 3});
  now += kRound;
  join(0, {});
  expect_refused(join(1, {.world = 3}), RefuseReason::kWorld, 3, 2);
  expect_refused(join(1, {.seed = 6}), RefuseReason::kSeed, 6, 5);
  expect_refused(join(1, {.rounding = 0}), RefuseReason::kRounding, 0, 1);
  expect_refused(join(1, {.shift = -3}), RefuseReason::kShift, static_cast<std::uint64_t>(-3), 0);
  expect_refused(join(1, {.shards = 2}), RefuseReason::kPool, 2, 1);
  EXPECT_EQ(count(Counter::kRefusals), 6U);
  EXPECT_EQ(join(1, {})[0].body<WelcomeBody>().state, SessionState::kReady);
}

TEST_F(JoiningTest, AJobThatEndedWhileItFormedDoesNotFailItsSuccessorOfOtherTerms) {
  join(0, {});
  for (Time waited = 0; waited < config().forming_timeout; waited += kRound) {
    expect_refused(join(0, {.world = 1, .instance = 77, .seed = 6}), RefuseReason::kJobRunning, 2,
                   2);
    now += kRound;
  }
  EXPECT_TRUE(shard.tick(now).empty());
  EXPECT_EQ(join(0, {.world = 1, .instance = 77, .seed = 6})[0].body<WelcomeBody>().state,
            SessionState::kReady);
}

TEST_F(JoiningTest, RefusesARankBeyondTheFormingWorldEvenFromOneWhoClaimsALargerWorld) {
  join(0, {.world = 2});
  join(15, {.world = 16});
  now += kRound;
  join(0, {.world = 2});
  expect_refused(join(15, {.world = 16}), RefuseReason::kWorld, 16, 2);
  EXPECT_EQ(join(1, {.world = 2})[0].body<WelcomeBody>().state, SessionState::kReady);
}

TEST_F(JoiningTest, RefusesWhatNoJobCanHave) {
  expect_refused(join(0, {.world = 0}), RefuseReason::kWorld, 0, 1);
  expect_refused(join(0, {.world = 17}), RefuseReason::kTooManyWorkers, 17, 16);
  expect_refused(join(2, {.world = 2}), RefuseReason::kRank, 2, 2);
  expect_refused(join(0, {.values = 100}), RefuseReason::kValues, 100, 1408);
  expect_refused(join(0, {.values = 1536}), RefuseReason::kValues, 1536, 1408);
  expect_refused(join(0, {.window = 3}), RefuseReason::kWindow, 3, kWindow);
  expect_refused(join(0, {.window = 0}), RefuseReason::kWindow, 0, kWindow);
  expect_refused(join(0, {.rounding = 2}), RefuseReason::kRounding, 2, 1);
  EXPECT_EQ(shard.usage().jobs, 0U);
}

TEST_F(JoiningTest, DropsAJoinThatIsShorterThanThePacketsItProposes) {
  Packet packet = join_packet(0, {.values = 1408});
  packet.pop_back();
  EXPECT_TRUE(give(packet, peer_of(0)).empty());
  EXPECT_EQ(count(Counter::kUnpadded), 1U);
}

TEST_F(JoiningTest, TellsAWorkerOfAnotherVersionOrCodecBothNumbers) {
  Packet packet = join_packet(0, {});
  packet[2] = std::byte{proto::kVersion + 1};
  expect_refused(give(packet, peer_of(0)), RefuseReason::kProtocolVersion, proto::kVersion + 1,
                 proto::kVersion);
  packet = join_packet(0, {.header_flags = 0x30});
  expect_refused(give(packet, peer_of(0)), RefuseReason::kCodec, 3, 0);
}

TEST_F(JoiningTest, RefusesARankThatAnotherWorkerHolds) {
  join(0, {});
  const auto answers = give(join_packet(0, {.instance = 999}), peer_of(5));
  expect_refused(answers, RefuseReason::kRankTaken, 0, peer_of(0).endpoint.address);
}

TEST_F(JoiningTest, GivesTheRankOfASilentJoinerToAnother) {
  join(0, {});
  now += config().forming_timeout;
  const auto answers = give(join_packet(0, {.instance = 999}), peer_of(5));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].header.type, Type::kWelcome);
}

TEST_F(JoiningTest, ForgetsAFormingJobThatEverybodyLeft) {
  const auto first = join(0, {});
  give(leave(0, first[0].header.epoch.value()), peer_of(0));
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  EXPECT_EQ(shard.usage().jobs, 0U);
}

TEST_F(JoiningTest, RefusesToReplaceAJobThatRuns) {
  join_all({});
  expect_refused(join(0, {.instance = 500}), RefuseReason::kJobRunning, 2, 2);
}

TEST_F(JoiningTest, RefusesMoreJobsThanItMayHave) {
  join(0, {.job = 1});
  join(0, {.job = 2});
  expect_refused(join(0, {.job = 3}), RefuseReason::kTooManyJobs, 0, 2);
}

TEST_F(JoiningTest, KeepsTheRoomOfJobsThatRanBeforeItsStartFromThoseThatWaited) {
  const JoinSpec waited{.flags = proto::kJoinWaited, .job = 1};
  expect_refused(join(0, waited), RefuseReason::kTooManyJobs, 0, 2);  // before its first tick
  constexpr Time kStep = 100'000'000;  // less would be a pause of this process
  for (int step = 0; step < 15; ++step, now += kStep) {
    EXPECT_TRUE(sent(shard.tick(now)).empty());
    expect_refused(join(0, waited), RefuseReason::kTooManyJobs, 0, 2);
  }
  EXPECT_EQ(join(0, {.job = 2})[0].header.type, Type::kWelcome);  // one that never waited
  EXPECT_EQ(join(0, waited)[0].header.type, Type::kWelcome);
}

TEST_F(JoiningTest, NamesTheSilentRankToTheOthers) {
  const std::uint32_t epoch = join_all({.world = 3});
  data({.rank = 1, .epoch = epoch}, {kOne});
  now += config().member_timeout - 1;
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  give(control(Type::kHeartbeat, 0, epoch), peer_of(0));
  give(control(Type::kHeartbeat, 1, epoch), peer_of(1));
  now += 1;
  const auto aborts = sent(shard.tick(now));
  ASSERT_EQ(aborts.size(), 2U);
  for (std::uint16_t rank : kBothRanks) {
    EXPECT_EQ(aborts[rank].to.endpoint, peer_of(rank).endpoint);
    EXPECT_EQ(aborts[rank].body<AbortBody>().reason, AbortReason::kMemberSilent);
    EXPECT_EQ(aborts[rank].body<AbortBody>().rank.value(), 2U);
  }
  // Whoever missed it is told again.
  EXPECT_EQ(give(control(Type::kHeartbeat, 0, epoch), peer_of(0))[0].header.type, Type::kAbort);
}

TEST_F(JoiningTest, FormsTheJobAnewAtOnceAfterARankFellSilent) {
  const std::uint32_t epoch = join_all({});
  now += config().member_timeout;
  give(control(Type::kHeartbeat, 0, epoch), peer_of(0));
  EXPECT_TRUE(sent(shard.tick(now)).empty());  // nobody waits for it yet
  const std::uint32_t next = join_all({.instance = 500});
  EXPECT_NE(next, epoch);
  data({.rank = 0, .epoch = next}, {kOne});
  EXPECT_EQ(data({.rank = 1, .epoch = next}, {kOne}).size(), 2U);
  EXPECT_EQ(shard.usage().ready_sessions, 1U);
}

TEST_F(JoiningTest, StillServesResultsAfterARankFellSilentThatNobodyWaitsFor) {
  const std::uint32_t epoch = join_all({});
  for (std::uint16_t rank : kBothRanks) data({.rank = rank, .epoch = epoch}, {kOne});
  now += config().member_timeout;
  give(control(Type::kHeartbeat, 0, epoch), peer_of(0));
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  const auto again = data({.rank = 0, .epoch = epoch}, {kOne});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].header.type, Type::kResult);
  const auto aborts = data({.rank = 0, .chunk = 1, .epoch = epoch}, {kOne});
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_EQ(aborts[0].body<AbortBody>().reason, AbortReason::kMemberSilent);
  EXPECT_EQ(aborts[0].body<AbortBody>().rank.value(), 1U);
}

TEST_F(JoiningTest, AbortsWhenARankLeavesAChunkThatWaitsForIt) {
  const std::uint32_t epoch = join_all({.world = 3});
  data({.rank = 0, .epoch = epoch}, {kOne});
  const auto answers = give(leave(2, epoch), peer_of(2));
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].header.type, Type::kLeave);
  EXPECT_EQ(answers[0].to.endpoint, peer_of(2).endpoint);
  EXPECT_EQ(answers[1].body<AbortBody>().reason, AbortReason::kMemberLeft);
  EXPECT_EQ(answers[1].body<AbortBody>().rank.value(), 2U);
  EXPECT_EQ(answers[1].body<AbortBody>().cause, LeaveReason::kClosed);
  EXPECT_EQ(answers[1].body<AbortBody>().other_rank.value(), proto::kAggregatorRank);
}

TEST_F(JoiningTest, PassesOnWhyARankLeftAndWhomItWaitedFor) {
  const std::uint32_t epoch = join_all({.world = 3});
  data({.rank = 0, .epoch = epoch}, {kOne});
  data({.rank = 1, .epoch = epoch}, {kOne});
  const auto echo = give(leave(0, epoch, LeaveReason::kTimedOut, 2), peer_of(0));
  ASSERT_EQ(echo.size(), 1U);  // what is open has the leaver's contribution
  EXPECT_EQ(echo[0].header.type, Type::kLeave);
  EXPECT_EQ(echo[0].body<proto::LeaveBody>().rank.value(), 2U);
  const auto aborts = data({.rank = 1, .chunk = 1, .epoch = epoch}, {kOne});
  ASSERT_EQ(aborts.size(), 2U);
  for (const Sent& abort : aborts) {
    EXPECT_EQ(abort.body<AbortBody>().reason, AbortReason::kMemberLeft);
    EXPECT_EQ(abort.body<AbortBody>().rank.value(), 0U);
    EXPECT_EQ(abort.body<AbortBody>().cause, LeaveReason::kTimedOut);
    EXPECT_EQ(abort.body<AbortBody>().other_rank.value(), 2U);
  }
}

TEST_F(JoiningTest, EndsWithTheMismatchThatALeaverHeardOfElsewhere) {
  const std::uint32_t epoch = join_all({.world = 3});
  const auto answers = give(leave_over(mismatch(2, 1), 0, epoch), peer_of(0));
  ASSERT_EQ(answers.size(), 3U) << "the echo, and ABORT to those who stay";
  EXPECT_EQ(answers[0].header.type, Type::kLeave);
  for (std::size_t rank : {1U, 2U}) {
    const Sent& abort = answers[rank];
    ASSERT_EQ(abort.header.type, Type::kAbort);
    EXPECT_EQ(abort.to.endpoint, peer_of(static_cast<std::uint16_t>(rank)).endpoint);
    const auto body = abort.body<AbortBody>();
    EXPECT_EQ(body.reason, AbortReason::kMismatch);
    EXPECT_EQ(body.rank.value(), 2U);
    EXPECT_EQ(body.other_rank.value(), 1U);
    EXPECT_EQ(body.fingerprint.value(), proto::fingerprint({.length = 100}));
    EXPECT_EQ(body.other_fingerprint.value(), proto::fingerprint({.length = 101}));
    EXPECT_EQ(body.operation.value(), 6U);
    EXPECT_EQ(body.other_operation.value(), 7U);
  }
  EXPECT_EQ(count(Counter::kAborts), 1U);
  // Who missed that asks again.
  const auto again = give(control(Type::kHeartbeat, 1, epoch), peer_of(1));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].body<AbortBody>().reason, AbortReason::kMismatch);
}

TEST_F(JoiningTest, DropsALeaveBecauseOfWhatThereIsNot) {
  const std::uint32_t epoch = join_all({.world = 3});
  proto::LeaveBody wrong[] = {mismatch(3, 1),
                              mismatch(1, 3),
                              leave_body(LeaveReason::kTimedOut, 3),
                              leave_body(LeaveReason::kMismatch),
                              leave_body(static_cast<LeaveReason>(0)),
                              leave_body(static_cast<LeaveReason>(7))};
  for (const proto::LeaveBody& body : wrong) {
    EXPECT_EQ(give(leave_over(body, 0, epoch), peer_of(0)).size(), 1U) << "the echo alone";
  }
  EXPECT_EQ(count(Counter::kBadLeave), std::size(wrong));
  EXPECT_EQ(count(Counter::kLeaves) + count(Counter::kAborts), 0U);
  data({.rank = 1, .epoch = epoch}, {kOne});
  data({.rank = 2, .epoch = epoch}, {kOne});
  EXPECT_EQ(data({.rank = 0, .epoch = epoch}, {kOne}).front().header.type, Type::kResult);
}

TEST_F(JoiningTest, StillServesResultsAfterAFasterRankLeft) {
  const std::uint32_t epoch = join_all({});
  for (std::uint16_t rank : kBothRanks) data({.rank = rank, .epoch = epoch}, {kOne});
  give(leave(0, epoch), peer_of(0));
  EXPECT_EQ(data({.rank = 1, .epoch = epoch}, {kOne})[0].header.type, Type::kResult);
  const auto next = data({.rank = 1, .chunk = 1, .epoch = epoch}, {kOne});
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].body<AbortBody>().reason, AbortReason::kMemberLeft);
}

TEST_F(JoiningTest, DropsTheSessionWhenAllHaveLeft) {
  const std::uint32_t epoch = join_all({});
  for (std::uint16_t rank : kBothRanks) give(leave(rank, epoch), peer_of(rank));
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  EXPECT_EQ(shard.usage().jobs, 0U);
}

TEST_F(JoiningTest, DropsTheSessionWhenAllFellSilent) {
  join_all({.world = 3});
  now += config().member_timeout;
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  EXPECT_EQ(shard.usage().jobs, 0U);
  EXPECT_EQ(count(Counter::kSilentMembers), 3U);
}

TEST_F(JoiningTest, IgnoresALeaveFromAStranger) {
  const std::uint32_t epoch = join_all({});
  give(leave(0, epoch), peer_of(9));
  give(leave(0, epoch - 1), peer_of(0));
  EXPECT_EQ(count(Counter::kLeaves), 0U);
}

class MulticastTest : public JoiningTest {
 protected:
  MulticastTest() {
    ShardConfig with_multicast = config();
    with_multicast.multicast_address = 0xEF4E'4100;
    with_multicast.multicast_port = 4790;
    shard = Shard(with_multicast);
  }
  const proto::Endpoint group{0xEF4E'4100 + kJob, 4790};
};

TEST_F(MulticastTest, ProbesTheGroupWhenTheLastRankHasJoined) {
  join(0, {});
  const auto answers = join(1, {});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].body<WelcomeBody>().state, SessionState::kForming);
  EXPECT_EQ(answers[0].body<WelcomeBody>().multicast_address.value(), group.address);
  EXPECT_EQ(answers[1].header.type, Type::kProbe);
  EXPECT_EQ(answers[1].to.endpoint, group);
  EXPECT_EQ(answers[1].packet.size(), proto::datagram_size(kValues));
}

TEST_F(MulticastTest, SendsOneResultToTheGroupWhenAllHearIt) {
  join(0, {});
  join(1, {});
  join(0, {.header_flags = proto::kFlagMulticast});
  const auto ready = join(1, {.header_flags = proto::kFlagMulticast});
  const std::uint32_t epoch = ready.back().header.epoch.value();
  data({.rank = 0, .epoch = epoch}, {kOne});
  const auto results = data({.rank = 1, .epoch = epoch}, {kOne});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].to.endpoint, group);
  EXPECT_NE(results[0].header.flags & proto::kFlagMulticast, 0);
  // A retransmission is answered by unicast.
  EXPECT_EQ(data({.rank = 1, .epoch = epoch}, {kOne})[0].to.endpoint, peer_of(1).endpoint);
}

TEST_F(MulticastTest, FansOutToThoseWhoDoNotHearTheGroup) {
  join(0, {});
  join(1, {});
  join(0, {.header_flags = proto::kFlagMulticast});
  now += config().probe_wait;
  const auto ready = sent(shard.tick(now));
  ASSERT_EQ(ready.size(), 2U);
  const std::uint32_t epoch = ready[0].header.epoch.value();
  data({.rank = 0, .epoch = epoch}, {kOne});
  const auto results = data({.rank = 1, .epoch = epoch}, {kOne});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].to.endpoint, group);
  EXPECT_EQ(results[1].to.endpoint, peer_of(1).endpoint);
}

TEST_F(MulticastTest, SendsToAMemberByUnicastOnceItAsksForMostResultsAgain) {
  join(0, {});
  join(1, {});
  join(0, {.header_flags = proto::kFlagMulticast});
  const std::uint32_t epoch =
      join(1, {.header_flags = proto::kFlagMulticast}).back().header.epoch.value();
  const std::vector<std::uint8_t> values(kValues, 50);
  const auto play = [&](std::uint32_t chunk, bool asks_again) {
    data({.rank = 0, .chunk = chunk, .epoch = epoch}, values);
    const auto results = data({.rank = 1, .chunk = chunk, .epoch = epoch}, values);
    if (asks_again) {
      const auto cached = data({.rank = 1, .chunk = chunk, .epoch = epoch}, values);
      EXPECT_EQ(cached.size(), 1U);
      EXPECT_EQ(cached.at(0).to.endpoint, peer_of(1).endpoint);
    }
    return results;
  };
  // Every other result, and now and then a whole window.
  std::uint32_t chunk = 0;
  for (; chunk < 100; ++chunk) {
    EXPECT_EQ(play(chunk, chunk % 2 == 0 || chunk % 50 < kWindow).size(), 1U) << chunk;
  }
  EXPECT_EQ(count(Counter::kDeafened), 0U);
  // All: within a few windows.
  while (count(Counter::kDeafened) == 0 && chunk < 100 + 2 * kWindow + 16) {
    EXPECT_EQ(play(chunk++, true).size(), 1U) << chunk;
  }
  EXPECT_EQ(count(Counter::kDeafened), 1U);
  EXPECT_GT(chunk, 100U + kWindow);
  for (int i = 0; i < 50; ++i) {
    const auto results = play(chunk++, false);
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].to.endpoint, group);
    EXPECT_EQ(results[1].to.endpoint, peer_of(1).endpoint);
    EXPECT_EQ(results[1].header.flags & proto::kFlagMulticast, 0);
  }
  EXPECT_EQ(count(Counter::kDeafened), 1U);
}

// One tick must not drop a session whose members another part of it has just been told to answer.
TEST_F(MulticastTest, AnnouncesASessionBeforeItFindsItsMembersSilent) {
  ShardConfig impatient = config();
  impatient.multicast_address = group.address - kJob;
  impatient.multicast_port = group.port;
  impatient.member_timeout = 40 * kMs;
  shard = Shard(impatient);
  join(0, {});
  join(1, {});
  now += impatient.probe_wait;
  const auto ready = sent(shard.tick(now));
  ASSERT_EQ(ready.size(), 2U);
  EXPECT_EQ(ready[1].body<WelcomeBody>().state, SessionState::kReady);
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  EXPECT_EQ(shard.usage().jobs, 0U);
}

}  // namespace
}  // namespace natagg::test
