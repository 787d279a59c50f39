// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How a stream finds its shards, joins them, and says why it cannot.
#include <gtest/gtest.h>

#include "stream_fixture.hpp"

namespace natagg::test {
namespace {

using ::testing::Test;

class ConnectingTest : public StreamFixture {
 protected:
  static StreamConfig unpinned() {
    StreamConfig with = config();
    with.values = 0;
    with.mtu = 9000;
    return with;
  }

  void refuse(proto::RefuseReason reason, std::uint64_t yours, std::uint64_t ours) {
    const proto::RefuseBody body{.instance = Be64{99},
                                 .yours = Be64{yours},
                                 .ours = Be64{ours},
                                 .reason = reason,
                                 .reserved = 0,
                                 .shard = Be16{}};
    stream->receive(control_packet(header(Type::kRefuse, 0), body), kAggregator, now);
  }

  void welcome_at(std::uint16_t place, proto::SessionState state) {
    welcome_at(place, state, shard(place));
  }
  void welcome_at(std::uint16_t place, proto::SessionState state, const Endpoint& from) {
    proto::WelcomeBody body = welcome_body(state);
    body.shard = Be16{place};
    welcome(body, from);
  }

  /// The shards that a JOIN goes to now.
  std::vector<Endpoint> joined_now() {
    std::vector<Endpoint> shards;
    for (const Sent& join : transmit(Type::kJoin)) shards.push_back(join.to);
    return shards;
  }

  void time_out() {
    now += 1000 * kMs;
    transmit();
    ASSERT_EQ(stream->state(), Stream::State::kFailed);
  }
};

TEST_F(ConnectingTest, AsksWithPacketsAsLongAsThePathMightCarry) {
  start(unpinned());
  const auto hellos = transmit(Type::kHello);
  ASSERT_EQ(hellos.size(), 4U);
  EXPECT_EQ(hellos[0].packet.size(), proto::datagram_size(8832));
  EXPECT_EQ(hellos[1].packet.size(), proto::datagram_size(1408));
  EXPECT_EQ(hellos[2].packet.size(), proto::datagram_size(1280));
  EXPECT_EQ(hellos[3].packet.size(), proto::datagram_size(384));
}

TEST_F(ConnectingTest, ProposesTheLongestPacketThatWasAnswered) {
  start(unpinned());
  transmit();
  offer(1, 384);
  offer(1, 1408);
  EXPECT_TRUE(transmit(Type::kJoin).empty());  // the longest may still be answered
  now += 150 * kMs;
  const auto joins = transmit(Type::kJoin);
  ASSERT_EQ(joins.size(), 1U);
  EXPECT_EQ(joins[0].packet.size(), proto::datagram_size(1408));
  EXPECT_EQ(proto::read_body<proto::JoinBody>(joins[0].packet).values.value(), 1408U);
}

TEST_F(ConnectingTest, JoinsAtOnceWhenTheLongestPacketWasAnswered) {
  start(unpinned());
  transmit();
  offer(1, 8832);
  EXPECT_EQ(transmit(Type::kJoin).size(), 1U);
}

TEST_F(ConnectingTest, ProposesNoMoreThanTheAggregatorTakes) {
  start(unpinned());
  transmit();
  offer(1, 8832, kAggregator, 1408);
  const auto joins = transmit(Type::kJoin);
  ASSERT_EQ(joins.size(), 1U);
  EXPECT_EQ(proto::read_body<proto::JoinBody>(joins[0].packet).values.value(), 1408U);
}

TEST_F(ConnectingTest, LetsTheAggregatorRefuseMorePinnedValuesThanItTakes) {
  StreamConfig with = config();
  with.values = 8832;
  start(with);
  transmit();
  offer(1, 8832, kAggregator, 1408);
  const auto joins = transmit(Type::kJoin);
  ASSERT_EQ(joins.size(), 1U);
  EXPECT_EQ(proto::read_body<proto::JoinBody>(joins[0].packet).values.value(), 8832U);
  refuse(proto::RefuseReason::kValues, 8832, 1408);
  EXPECT_EQ(stream->failure().message,
            "aggregator 10.0.0.1:4790 refuses rank 1 of job 7: values per packet: 8832 here, its "
            "own is 1408");
}

TEST_F(ConnectingTest, FillsEveryFieldOfAJoin) {
  start(config());
  transmit();
  offer(2, kValues);
  for (std::uint16_t i = 0; i < 2; ++i) {
    const auto sent = transmit(Type::kJoin);
    ASSERT_EQ(sent.size(), 1U);
    welcome_at(i, proto::SessionState::kForming);
    const Sent& join = sent[0];
    EXPECT_EQ(join.to, shard(i));
    EXPECT_EQ(join.header.job.value(), 7U);
    EXPECT_EQ(join.header.rank.value(), 1U);
    EXPECT_EQ(join.header.flags, proto::kFlagNearest);
    const auto body = proto::read_body<proto::JoinBody>(join.packet);
    EXPECT_EQ(body.instance.value(), 99U);
    EXPECT_EQ(body.seed.value(), 5U);
    EXPECT_EQ(body.world.value(), 3U);
    EXPECT_EQ(body.values.value(), kValues);
    EXPECT_EQ(body.window.value(), 8U);
    EXPECT_EQ(body.shard.value(), i);
    EXPECT_EQ(body.shards.value(), 2U);
    EXPECT_EQ(body.rounding, 1U);
    EXPECT_EQ(body.flags, proto::kJoinValuesPinned);
  }
}

TEST_F(ConnectingTest, JoinsAShardWhenThoseOfLowerAddressesHaveTakenItIn) {
  const Endpoint other{kAggregator.address - 1, kAggregator.port};  // second, and yet before
  StreamConfig with = config();
  with.aggregators = {kAggregator, other};
  start(with);
  transmit();
  offer(2, kValues);
  offer(1, kValues, other);
  EXPECT_EQ(joined_now(), std::vector{other});
  EXPECT_EQ(stream->next_event(), now + 50 * kMs);
  welcome_at(2, proto::SessionState::kForming, other);
  EXPECT_EQ(stream->next_event(), now);
  EXPECT_EQ(joined_now(), std::vector{shard(0)});
  welcome_at(0, proto::SessionState::kReady);
  EXPECT_EQ(joined_now(), std::vector{shard(1)});
  now += 50 * kMs;
  EXPECT_EQ(joined_now(), (std::vector{other, shard(1)}));
}

TEST_F(ConnectingTest, HoldsNoLaterShardWhileItWaitsForRoomAtOne) {
  start(config());
  transmit();
  offer(3, kValues);
  for (std::uint16_t i = 0; i < 3; ++i) {
    EXPECT_EQ(joined_now(), std::vector{shard(i)});
    welcome_at(i, proto::SessionState::kForming);
  }
  // It was away for so long that another job has taken the room.
  refuse(proto::RefuseReason::kTooManyJobs, 0, 1);
  now += 50 * kMs;
  EXPECT_EQ(joined_now(), std::vector{shard(0)});
  now += 50 * kMs;
  EXPECT_EQ(joined_now(), std::vector{shard(0)});
  welcome_at(0, proto::SessionState::kForming);
  EXPECT_EQ(joined_now(), (std::vector{shard(1), shard(2)}));
  // Others than those for want of room say nothing about it.
  refuse(proto::RefuseReason::kJobRunning, 3, 3);
  now += 50 * kMs;
  EXPECT_EQ(joined_now(), (std::vector{shard(0), shard(1), shard(2)}));
}

TEST_F(ConnectingTest, SaysInItsJoinWhetherItWaitsForRoom) {
  start(config());
  transmit();
  offer(1, kValues);
  const auto waits = [this] {
    const auto joins = transmit(Type::kJoin);
    now += 50 * kMs;
    if (joins.size() != 1) return -1;
    const auto flags = proto::read_body<proto::JoinBody>(joins[0].packet).flags;
    EXPECT_NE(flags & proto::kJoinValuesPinned, 0);
    return (flags & proto::kJoinWaited) != 0 ? 1 : 0;
  };
  EXPECT_EQ(waits(), 0);
  refuse(proto::RefuseReason::kJobRunning, 3, 3);
  EXPECT_EQ(waits(), 0);
  refuse(proto::RefuseReason::kTooManyJobs, 0, 1);
  EXPECT_EQ(waits(), 1);
  EXPECT_EQ(waits(), 1);
  welcome_at(0, proto::SessionState::kForming);
  EXPECT_EQ(waits(), 0);
}

TEST_F(ConnectingTest, RepeatsAJoinUntilItIsReady) {
  start(config());
  transmit();
  offer(1, kValues);
  EXPECT_EQ(transmit(Type::kJoin).size(), 1U);
  now += 50 * kMs;
  EXPECT_EQ(transmit(Type::kJoin).size(), 1U);
  welcome(welcome_body(proto::SessionState::kReady));
  now += 50 * kMs;
  EXPECT_TRUE(transmit(Type::kJoin).empty());
}

TEST_F(ConnectingTest, SaysAtOnceThatItHearsTheMulticastProbe) {
  start(config());
  transmit();
  offer(1, kValues);
  transmit();
  proto::WelcomeBody forming = welcome_body(proto::SessionState::kForming);
  forming.multicast_address = Be32{0xEF00'0001};
  forming.multicast_port = Be16{4790};
  welcome(forming);
  ASSERT_EQ(stream->groups().size(), 1U);
  EXPECT_EQ(stream->groups()[0], (Endpoint{0xEF00'0001, 4790}));
  EXPECT_TRUE(transmit(Type::kJoin).empty());
  stream->receive(control_packet(header(Type::kProbe)), kAggregator, now);
  const auto joins = transmit(Type::kJoin);
  ASSERT_EQ(joins.size(), 1U);
  EXPECT_NE(joins[0].header.flags & proto::kFlagMulticast, 0);
}

TEST_F(ConnectingTest, NamesTheAggregatorThatDoesNotAnswer) {
  start(config());
  transmit();
  time_out();
  EXPECT_EQ(stream->failure().status, NATAGG_TIMED_OUT);
  EXPECT_EQ(
      stream->failure().message,
      "no answer from aggregator 10.0.0.1:4790 to 1 HELLO packets, the shortest for 128 values "
      "on a link of MTU 1500");
}

TEST_F(ConnectingTest, NamesTheRankThatHasNotJoined) {
  start(config());
  transmit();
  offer(1, kValues);
  transmit();
  welcome(welcome_body(proto::SessionState::kForming));
  time_out();
  EXPECT_EQ(stream->failure().status, NATAGG_TIMED_OUT);
  EXPECT_EQ(stream->failure().rank, 2);
  EXPECT_EQ(stream->failure().message,
            "rank 2 has not joined at aggregator 10.0.0.1:4790 (2 of 3 have)");
}

TEST_F(ConnectingTest, FailsAtOnceWhenTermsAreRefusedWithBothNumbers) {
  start(config());
  transmit();
  offer(1, kValues);
  transmit();
  refuse(proto::RefuseReason::kWorld, 3, 8);
  EXPECT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().status, NATAGG_REFUSED);
  EXPECT_EQ(stream->failure().message,
            "aggregator 10.0.0.1:4790 refuses rank 1 of job 7: world size: 3 here, its own is 8");
}

TEST_F(ConnectingTest, ReportsAnotherProtocolVersion) {
  start(config());
  transmit();
  refuse(proto::RefuseReason::kProtocolVersion, 1, 2);
  EXPECT_EQ(stream->failure().status, NATAGG_REFUSED);
  EXPECT_EQ(stream->failure().message,
            "aggregator 10.0.0.1:4790 refuses: protocol version: 1 here, its own is 2");
}

TEST_F(ConnectingTest, WaitsWhileAnEarlierRunHoldsTheRank) {
  start(config());
  transmit();
  offer(1, kValues);
  transmit();
  refuse(proto::RefuseReason::kRankTaken, 1, 0x0A00'0009);
  EXPECT_EQ(stream->state(), Stream::State::kConnecting);
  time_out();
  EXPECT_EQ(stream->failure().message,
            "aggregator 10.0.0.1:4790 refuses rank 1 of job 7: rank 1 is taken by a worker at "
            "10.0.0.9");
}

TEST_F(ConnectingTest, IgnoresAWelcomeForAnotherInstanceAndNonsenseTerms) {
  start(config());
  transmit();
  offer(1, kValues);
  transmit();
  proto::WelcomeBody body = welcome_body(proto::SessionState::kReady);
  body.instance = Be64{98};
  welcome(body);
  for (std::uint16_t values : std::vector<std::uint16_t>{0, 100, 256, 0xFFFF}) {
    body = welcome_body(proto::SessionState::kReady);
    body.values = Be16{values};
    welcome(body);
  }
  for (std::uint16_t window : std::vector<std::uint16_t>{0, 3, 7}) {
    body = welcome_body(proto::SessionState::kReady);
    body.window = Be16{window};
    welcome(body);
  }
  EXPECT_EQ(stream->state(), Stream::State::kConnecting);
}

TEST_F(ConnectingTest, RefusesShardsThatHaveDifferentWorkers) {
  start(config());
  transmit();
  offer(2, kValues);
  transmit();
  welcome(welcome_body(proto::SessionState::kReady), shard(0));
  proto::WelcomeBody other = welcome_body(proto::SessionState::kReady);
  other.members = Be64{4321};
  other.shard = Be16{1};
  welcome(other, shard(1));
  EXPECT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().status, NATAGG_REFUSED);
}

TEST_F(ConnectingTest, HeartbeatsAShardThatIsReadyWhileOthersAreNot) {
  start(config());
  transmit();
  offer(2, kValues);
  transmit();
  welcome(welcome_body(proto::SessionState::kReady), shard(0));
  now += 100 * kMs;
  const auto beats = transmit(Type::kHeartbeat);
  ASSERT_EQ(beats.size(), 1U);
  EXPECT_EQ(beats[0].to, shard(0));
  EXPECT_EQ(beats[0].header.epoch.value(), kEpoch);
}

TEST_F(ConnectingTest, NamesTheFieldOfABadConfiguration) {
  const auto problem = [&](auto change) -> std::string {
    StreamConfig with = config();
    change(with);
    try {
      start(with);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(problem([](StreamConfig& c) { c.rank = 3; }),
            "rank is 3, must be below the world size 3");
  EXPECT_EQ(problem([](StreamConfig& c) { c.window = 12; }),
            "window is 12, must be a power of two up to 32768");
  EXPECT_EQ(problem([](StreamConfig& c) { c.values = 100; }),
            "values is 100, must be a multiple of 128 up to 8832");
  EXPECT_EQ(problem([](StreamConfig& c) { c.shift = 65; }), "shift is 65, must be -64 to 64");
  EXPECT_EQ(problem([](StreamConfig& c) { c.aggregators.clear(); }),
            "aggregators must name at least one");
}

}  // namespace
}  // namespace natagg::test
