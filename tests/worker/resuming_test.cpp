// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A stream whose aggregator restarts, dies or sends it elsewhere: what it says when it joins again,
// and what it sends and takes in afterwards.
#include <gtest/gtest.h>

#include "stream_fixture.hpp"

namespace natagg::test {
namespace {

using proto::JoinBody;
using proto::MoveBody;
using proto::SessionState;

const Endpoint kSecond{0x0A00'0002, 4790};

class ResumingTest : public StreamFixture {
 protected:
  void lose_session() {
    proto::AbortBody body{};
    body.reason = proto::AbortReason::kUnknownSession;
    give_abort(body);
  }

  void ready(std::uint32_t epoch, std::uint32_t first, const Endpoint& from = kAggregator,
             std::uint16_t place = 0) {
    proto::WelcomeBody body = welcome_body(SessionState::kReady);
    body.first_sequence = Be32{first};
    body.shard = Be16{place};
    stream->receive(control_packet(header(Type::kWelcome, epoch), body), from, now);
  }

  JoinBody joined() {
    const auto joins = transmit(Type::kJoin);
    EXPECT_EQ(joins.size(), 1U);
    if (joins.empty()) return {};
    last_join_to = joins[0].to;
    return proto::read_body<JoinBody>(joins[0].packet);
  }

  /// A pool of two aggregators with a shard each.
  void connect_to_two() {
    StreamConfig with = config();
    with.aggregators.push_back(kSecond);
    start(with);
    transmit();
    for (const Endpoint& aggregator : with.aggregators) offer(1, kValues, aggregator);
    transmit();
    ready(kEpoch, kFirst);
    ready(kEpoch, kFirst, kSecond, 1);
    ASSERT_EQ(stream->state(), Stream::State::kReady);
  }

  void give_move(std::uint64_t members, std::uint16_t place, std::uint16_t moves,
                 const Endpoint& from) {
    const MoveBody body{.members = Be64{members}, .shard = Be16{place}, .moves = Be16{moves}};
    stream->receive(control_packet(header(Type::kMove, 500), body), from, now);
  }

  Endpoint last_join_to;
};

TEST_F(ResumingTest, JoinsAgainWithWhatItLacksAndGoesOn) {
  connect();
  const std::uint64_t id = submit(300);
  const auto before = transmit(Type::kData);
  ASSERT_EQ(before.size(), 3U);
  give_result(before[0]);
  lose_session();
  const JoinBody join = joined();
  EXPECT_EQ(join.members.value(), 1234U);
  EXPECT_EQ(join.resume.value(), kFirst + 1);
  EXPECT_EQ(join.moves.value(), 0U);
  EXPECT_EQ(join.window.value(), 8U);
  EXPECT_EQ(join.flags & proto::kJoinUntouched, 0);
  give_result(before[1]);  // of the lost session
  ready(kEpoch + 1, kFirst + 1);
  const auto again = transmit(Type::kData);
  ASSERT_EQ(again.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again[i].header.epoch.value(), kEpoch + 1);
    EXPECT_EQ(again[i].header.sequence.value(), before[i + 1].header.sequence.value());
    EXPECT_EQ(again[i].header.slot.value(), before[i + 1].header.slot.value());
    give_result(again[i]);
  }
  const auto completion = stream->poll_completion();
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(completion->id, id);
  EXPECT_EQ(completion->status, NATAGG_OK);
  EXPECT_EQ(stream->stats().resumed_sessions, 1U);
}

TEST_F(ResumingTest, SendsWhatItHasFinishedAndOverwrittenForTheOthers) {
  connect();
  submit(300);
  const auto before = transmit(Type::kData);
  for (const Sent& data : before) give_result(data);
  ASSERT_TRUE(stream->poll_completion().has_value());
  std::fill(in.begin(), in.end(), -1.0F);
  std::fill(out.begin(), out.end(), -1.0F);
  lose_session();
  EXPECT_EQ(joined().resume.value(), kFirst + 3);
  ready(kEpoch + 1, kFirst + 1);  // another rank lacks two
  const auto again = transmit(Type::kData);
  ASSERT_EQ(again.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto sent_before = proto::payload(before[i + 1].packet);
    const auto sent_again = proto::payload(again[i].packet);
    EXPECT_TRUE(
        std::equal(sent_before.begin(), sent_before.end(), sent_again.begin(), sent_again.end()));
    give_result(again[i]);
  }
  EXPECT_FALSE(stream->poll_completion().has_value());
  EXPECT_EQ(out[200], -1.0F);  // the user's again
  now += 100 * kMs;
  EXPECT_TRUE(transmit(Type::kData).empty());
}

TEST_F(ResumingTest, SendsNothingNewBeforeTheResumedSessionHasTheChunksResults) {
  connect();
  submit(128 * 8);
  for (const Sent& data : transmit(Type::kData)) give_result(data);
  ASSERT_TRUE(stream->poll_completion().has_value());
  submit(128 * 8);
  EXPECT_EQ(transmit(Type::kData).size(), 8U);
  lose_session();
  joined();
  ready(kEpoch + 1, kFirst);  // a rank lacks everything
  const auto first = transmit(Type::kData);
  ASSERT_EQ(first.size(), 8U);
  EXPECT_EQ(first[0].header.sequence.value(), kFirst);
  EXPECT_EQ(first[0].header.operation.value(), 0U);
  give_result(first[0]);
  const auto next = transmit(Type::kData);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].header.sequence.value(), kFirst + 8);
  EXPECT_EQ(next[0].header.operation.value(), 1U);
}

TEST_F(ResumingTest, FailsWhenTheJobHasFormedAnewWithOthers) {
  connect();
  submit(1);
  transmit();
  lose_session();
  joined();
  proto::WelcomeBody body = welcome_body(SessionState::kReady);
  body.members = Be64{4321};
  stream->receive(control_packet(header(Type::kWelcome, kEpoch + 1), body), kAggregator, now);
  ASSERT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().status, NATAGG_REFUSED);
  EXPECT_EQ(stream->failure().message, "job 7 has formed anew with other workers");
}

TEST_F(ResumingTest, NamesTheRankThatDoesNotJoinAgain) {
  connect();
  submit(1);
  transmit();
  lose_session();
  for (int ms = 0; ms < 1600; ms += 50) {
    transmit();
    proto::WelcomeBody body = welcome_body(SessionState::kForming);
    stream->receive(control_packet(header(Type::kWelcome, kEpoch + 1), body), kAggregator, now);
    now += 50 * kMs;
  }
  ASSERT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().status, NATAGG_RANK_LOST);
  EXPECT_EQ(stream->failure().rank, 2);
  EXPECT_EQ(stream->failure().message,
            "an aggregator was lost, and the job cannot be resumed: rank 2 has not joined at "
            "aggregator 10.0.0.1:4790 (2 of 3 have)");
}

TEST_F(ResumingTest, GoesOnUndisturbedWhereTheSessionWasNotLost) {
  connect();
  submit(300);
  const auto before = transmit(Type::kData);
  lose_session();
  joined();
  ready(kEpoch, kFirst);
  EXPECT_TRUE(transmit(Type::kData).empty());
  for (const Sent& data : before) give_result(data);
  EXPECT_TRUE(stream->poll_completion().has_value());
  EXPECT_EQ(stream->stats().resumed_sessions, 0U);
}

TEST_F(ResumingTest, MovesThePlaceOfASilentAggregatorToTheNext) {
  connect_to_two();
  submit(300);
  const auto sent_data = transmit(Type::kData);
  ASSERT_EQ(sent_data.size(), 3U);
  Time moved = 0;
  for (int ms = 0; ms < 1500 && moved == 0; ms += 50) {
    now += 50 * kMs;
    stream->receive(control_packet(header(Type::kHeartbeat)), kSecond, now);
    for (const Sent& s : transmit(Type::kJoin)) {
      moved = now;
      EXPECT_EQ(s.to, kSecond);
      const auto join = proto::read_body<JoinBody>(s.packet);
      EXPECT_EQ(join.shard.value(), 0U);
      EXPECT_EQ(join.moves.value(), 1U);
      EXPECT_EQ(join.resume.value(), kFirst);
      EXPECT_NE(join.flags & proto::kJoinUntouched, 0);
    }
  }
  EXPECT_EQ(moved, kStart + 1000 * kMs);
  ready(kEpoch + 5, kFirst, kSecond, 0);
  const auto again = transmit(Type::kData);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].to, kSecond);
  EXPECT_EQ(again[0].header.epoch.value(), kEpoch + 5);
  give_result(again[0]);
  give_result(again[1]);
  // Place 1 is at the same shard under its own epoch.
  for (const Sent& data : sent_data) {
    if (data.to == kSecond) give_result(data);
  }
  EXPECT_TRUE(stream->poll_completion().has_value());
}

TEST_F(ResumingTest, FollowsTheOthersToAnotherAggregator) {
  connect_to_two();
  give_move(1234, 0, 1, kSecond);
  const JoinBody join = joined();
  EXPECT_EQ(last_join_to, kSecond);
  EXPECT_EQ(join.shard.value(), 0U);
  EXPECT_EQ(join.moves.value(), 1U);
}

TEST_F(ResumingTest, IgnoresCallsThatAreOldForeignOrFromElsewhere) {
  connect_to_two();
  give_move(1234, 0, 1, kAggregator);  // not where one move leads
  give_move(4321, 0, 1, kSecond);      // another job's members
  give_move(1234, 0, 0, kSecond);      // no move
  give_move(1234, 7, 1, kSecond);      // no such place
  EXPECT_TRUE(transmit(Type::kJoin).empty());
  EXPECT_EQ(stream->stats().rejected_packets, 4U);
}

}  // namespace
}  // namespace natagg::test
