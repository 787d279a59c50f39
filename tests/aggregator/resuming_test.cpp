// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Sessions of ranks that lost an aggregator: where they begin, who may be in them, and how the
// members of another session are called to one.
#include <gtest/gtest.h>

#include "aggregator/core/session.hpp"
#include "shard_fixture.hpp"

namespace natagg::test {
namespace {

using proto::AbortBody;
using proto::JoinBody;
using proto::MoveBody;
using proto::RefuseBody;
using proto::RefuseReason;
using proto::SessionState;
using proto::WelcomeBody;

constexpr std::uint8_t kOne = 50;

class ResumingTest : public ShardFixture {
 protected:
  struct Claim {
    std::uint64_t members = 0;
    std::uint32_t resume = 0;
    std::uint16_t place = 0;
    std::uint16_t moves = 0;
    bool untouched = false;
    std::uint64_t instance = 100;
  };

  std::vector<Sent> resume(std::uint16_t rank, const Claim& claim) {
    Packet packet = join_packet(rank, {.instance = claim.instance, .shards = 2});
    auto body = proto::read_body<JoinBody>(packet);
    body.members = Be64{claim.members};
    body.resume = Be32{claim.resume};
    body.shard = Be16{claim.place};
    body.moves = Be16{claim.moves};
    if (claim.untouched) body.flags |= proto::kJoinUntouched;
    std::memcpy(packet.data() + sizeof(Header), &body, sizeof(body));
    return give(packet, peer_of(rank));
  }

  /// The digest of ranks 0 and 1 with their usual instances, as a session of theirs told it.
  std::uint64_t digest() {
    Shard other(config());
    std::swap(shard, other);
    std::vector<Sent> last;
    for (std::uint16_t rank : kBothRanks) last = join(rank, {});
    std::swap(shard, other);
    return last.back().body<WelcomeBody>().members.value();
  }

  static void expect_refused(const std::vector<Sent>& answers, RefuseReason reason) {
    ASSERT_EQ(answers.size(), 1U);
    ASSERT_EQ(answers[0].header.type, Type::kRefuse);
    EXPECT_EQ(answers[0].body<RefuseBody>().reason, reason);
  }

  static SessionState state(const std::vector<Sent>& answers) {
    EXPECT_FALSE(answers.empty());
    return answers.empty() ? SessionState{} : answers.back().body<WelcomeBody>().state;
  }
};

TEST_F(ResumingTest, BeginsAtTheFirstChunkThatARankLacks) {
  const std::uint64_t members = digest();
  EXPECT_EQ(state(resume(0, {.members = members, .resume = 3})), SessionState::kForming);
  const auto ready = resume(1, {.members = members, .resume = 0xFFFF'FFFF});
  ASSERT_EQ(state(ready), SessionState::kReady);
  EXPECT_EQ(ready.back().body<WelcomeBody>().first_sequence.value(), 0xFFFF'FFFFU);
  EXPECT_EQ(ready.back().body<WelcomeBody>().members.value(), members);
  const std::uint32_t epoch = ready.back().header.epoch.value();
  // The fixture's chunk 0 is 0xFFFFFFFE, which is over; the next opens.
  data({.rank = 0, .chunk = 0, .epoch = epoch}, {kOne});
  EXPECT_EQ(count(Counter::kStaleSequence), 1U);
  data({.rank = 0, .chunk = 1, .epoch = epoch}, {kOne});
  EXPECT_EQ(data({.rank = 1, .chunk = 1, .epoch = epoch}, {kOne})[0].header.type, Type::kResult);
  EXPECT_EQ(count(Counter::kResumedSessions), 1U);
}

TEST_F(ResumingTest, KeepsTheRankThatWasStartedAgainOut) {
  const std::uint64_t members = digest();
  resume(0, {.members = members, .resume = 3});
  expect_refused(resume(1, {.instance = 700}), RefuseReason::kJobRunning);
  // Even where no rank has a result: the others' sessions on other shards have the old rank.
  now += config().forming_timeout;
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  resume(0, {.members = members, .untouched = true});
  const auto refusals = resume(1, {.instance = 700});
  expect_refused(refusals, RefuseReason::kMembers);
  EXPECT_EQ(refusals[0].to.endpoint, peer_of(0).endpoint);
  // Which stays for a new job.
  EXPECT_EQ(state(resume(0, {.instance = 700})), SessionState::kReady);
}

TEST_F(ResumingTest, LetsARankThatNeverHeardOfTheLostSessionMeetTheOthers) {
  resume(0, {.members = digest(), .resume = 77, .untouched = true});
  const auto ready = resume(1, {});
  ASSERT_EQ(state(ready), SessionState::kReady);
  EXPECT_EQ(ready.back().body<WelcomeBody>().first_sequence.value(), kFirst);
}

TEST_F(ResumingTest, TellsARankThatItsJobHasFormedAnewWithoutIt) {
  for (std::uint16_t rank : kBothRanks) resume(rank, {});
  expect_refused(resume(1, {.members = digest() + 1, .resume = 3, .instance = 700}),
                 RefuseReason::kMembers);
}

TEST_F(ResumingTest, EndsWhenARankLeavesWithoutWhichItCannotBeWhole) {
  const std::uint64_t members = digest();
  resume(0, {.members = members, .resume = 3});
  now += 10 * kMs;
  const auto forming = resume(0, {.members = members, .resume = 3});
  Header header = proto::make_header(Type::kLeave);
  header.job = Be32{kJob};
  header.epoch = forming[0].header.epoch;
  const auto answers =
      give(control_packet(header, leave_body(proto::LeaveReason::kRankLost, 1)), peer_of(0));
  ASSERT_EQ(answers.size(), 1U);  // nobody else is there
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  EXPECT_EQ(shard.usage().jobs, 0U);
}

TEST_F(ResumingTest, StandsInForAnotherPlaceAndCallsTheMembersOfItsOwn) {
  std::vector<Sent> last;
  for (std::uint16_t rank : kBothRanks) last = resume(rank, {.place = 1});
  ASSERT_EQ(state(last), SessionState::kReady);
  const std::uint32_t own = last.back().header.epoch.value();
  const std::uint64_t members = last.back().body<WelcomeBody>().members.value();
  now += 100 * kMs;
  const auto forming = resume(0, {.members = members, .resume = 9, .place = 0, .moves = 1});
  EXPECT_EQ(state(forming), SessionState::kForming);
  const auto calls = sent(shard.tick(now));
  ASSERT_EQ(calls.size(), 2U);
  for (std::uint16_t rank : kBothRanks) {
    EXPECT_EQ(calls[rank].header.type, Type::kMove);
    EXPECT_EQ(calls[rank].to.endpoint, peer_of(rank).endpoint);
    EXPECT_EQ(calls[rank].body<MoveBody>().members.value(), members);
    EXPECT_EQ(calls[rank].body<MoveBody>().shard.value(), 0U);
    EXPECT_EQ(calls[rank].body<MoveBody>().moves.value(), 1U);
  }
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  const auto ready = resume(1, {.members = members, .resume = 8, .place = 0, .moves = 1});
  ASSERT_EQ(state(ready), SessionState::kReady);
  const std::uint32_t other = ready.back().header.epoch.value();
  EXPECT_EQ(shard.usage().ready_sessions, 2U);
  // Both places run, each under its epoch.
  data({.rank = 0, .epoch = own}, {kOne});
  data({.rank = 0, .chunk = 8 - kFirst, .epoch = other}, {kOne});
  EXPECT_EQ(shard.usage().open_slots, 2U);
}

TEST_F(ResumingTest, CallsNobodyForAStranger) {
  std::vector<Sent> last;
  for (std::uint16_t rank : kBothRanks) last = resume(rank, {.place = 1});
  const std::uint64_t members = last.back().body<WelcomeBody>().members.value();
  now += 100 * kMs;
  resume(0, {.members = members, .resume = 9, .moves = 1, .instance = 700});
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  EXPECT_EQ(count(Counter::kMoves), 0U);
}

TEST_F(ResumingTest, DoesNotTakeItsOwnPauseForTheMembersSilence) {
  join_all({});
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  now += 10 * config().member_timeout;
  EXPECT_TRUE(sent(shard.tick(now)).empty());
  EXPECT_EQ(shard.usage().ready_sessions, 1U);
  EXPECT_EQ(count(Counter::kSilentMembers), 0U);
}

TEST(Session, ForgetsWhichChunksWereKnownBeforeTheirSequencesAreUsedAgain) {
  const aggregator::Terms terms{.world = 1, .values = kValues, .window = kWindow, .stragglers = 5};
  aggregator::Session session(1, terms, {}, nullptr);
  const aggregator::Claim claim{.members = 9, .resume = 100, .held = 3, .untouched = false};
  ASSERT_FALSE(session.join(0, 100, terms, claim, peer_of(0), false, 0, kMs));
  session.make_ready(0, default_kernels());
  const auto known = [&](std::uint32_t sequence) {
    session.opened(sequence);
    return session.may_be_known(100);
  };
  EXPECT_FALSE(session.may_be_known(99));
  EXPECT_TRUE(session.may_be_known(102));
  EXPECT_FALSE(session.may_be_known(103));
  EXPECT_TRUE(known(102 + proto::kKeptPartialWindows * kWindow));
  EXPECT_FALSE(known(103 + proto::kKeptPartialWindows * kWindow));
}

}  // namespace
}  // namespace natagg::test
