// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Answers that no aggregator gives: a stream trusts none of their numbers.
#include <gtest/gtest.h>

#include "stream_fixture.hpp"

namespace natagg::test {
namespace {

class HostileAggregatorTest : public StreamFixture {
 protected:
  /// An OFFER as long as the question, with these numbers.
  void give_offer(std::uint16_t shards, std::uint16_t max_values, std::uint16_t max_window,
                  const Endpoint& from = kAggregator) {
    const proto::OfferBody body{.instance = Be64{99},
                                .shards = Be16{shards},
                                .max_values = Be16{max_values},
                                .max_window = Be16{max_window},
                                .max_workers = Be16{1024}};
    stream->receive(control_packet(header(Type::kOffer, 0), body, proto::datagram_size(kValues)),
                    from, now);
  }

  void start_unpinned() {
    StreamConfig with = config();
    with.values = 0;
    with.mtu = 300;
    start(with);
    transmit();
  }
};

TEST_F(HostileAggregatorTest, TakesNoOfferThatNoAggregatorCanMake) {
  start_unpinned();
  give_offer(0, 1408, 256);
  give_offer(257, 1408, 256);
  give_offer(1, 5, 256);  // a JOIN of 5 values would not hold its own body
  give_offer(1, 1408, 0);
  EXPECT_TRUE(transmit(Type::kJoin).empty());
  now += 1000 * kMs;
  transmit();
  ASSERT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().message,
            "aggregator 10.0.0.1:4790 offers what no aggregator can have");
}

TEST_F(HostileAggregatorTest, TakesNoOfferOfShardsBeyondTheLastPort) {
  StreamConfig with = config();
  with.aggregators = {{0x0A00'0001, 65535}};
  start(with);
  transmit();
  give_offer(2, 1408, 256, with.aggregators[0]);
  EXPECT_TRUE(transmit(Type::kJoin).empty());
  give_offer(1, 1408, 256, with.aggregators[0]);
  EXPECT_EQ(transmit(Type::kJoin).size(), 1U);
}

TEST_F(HostileAggregatorTest, ProposesAWholeNumberOfGroupsOfValues) {
  StreamConfig with = config();
  with.values = 0;
  with.mtu = 576;
  start(with);
  transmit();
  offer(1, 384, kAggregator, 300);
  const auto joins = transmit(Type::kJoin);
  ASSERT_EQ(joins.size(), 1U);
  EXPECT_EQ(proto::read_body<proto::JoinBody>(joins[0].packet).values.value(), 256U);
}

TEST_F(HostileAggregatorTest, NamesTheAggregatorsThatShareAShard) {
  StreamConfig with = config();
  const Endpoint second{kAggregator.address, static_cast<std::uint16_t>(kAggregator.port + 1)};
  with.aggregators = {kAggregator, second};
  start(with);
  transmit();
  give_offer(2, 1408, 256);
  give_offer(1, 1408, 256, second);
  transmit();
  ASSERT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().status, NATAGG_INVALID_ARGUMENT);
  EXPECT_EQ(stream->failure().message,
            "aggregators: 10.0.0.1:4790 and 10.0.0.1:4791 share shards, for the one has 2 and the "
            "other 1 on consecutive ports");
}

TEST_F(HostileAggregatorTest, KeepsNoMoreSlotsThanItProposed) {
  start(config());
  transmit();
  offer(1, kValues);
  transmit();
  proto::WelcomeBody body = welcome_body(proto::SessionState::kReady);
  body.window = Be16{0x8000};
  welcome(body);
  EXPECT_EQ(stream->state(), Stream::State::kConnecting);
  body.window = Be16{8};
  welcome(body);
  EXPECT_EQ(stream->state(), Stream::State::kReady);
}

TEST_F(HostileAggregatorTest, ListensToOneGroupAShardHoweverManyAreNamed) {
  start(config());
  transmit();
  offer(2, kValues);
  transmit();
  for (std::uint32_t i = 1; i <= 100; ++i) {
    proto::WelcomeBody body = welcome_body(proto::SessionState::kForming);
    body.multicast_address = Be32{0xEF00'0000 + i};
    welcome(body);
  }
  EXPECT_EQ(stream->groups().size(), 2U);
}

TEST_F(HostileAggregatorTest, FailsAnOperationThatIsOverdueBeforeTheJobIsComplete) {
  start(config());
  transmit();
  submit(10, 50 * kMs);
  now += 50 * kMs;
  transmit();
  ASSERT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().status, NATAGG_TIMED_OUT);
  EXPECT_EQ(stream->poll_completion()->status, NATAGG_TIMED_OUT);
}

TEST_F(HostileAggregatorTest, NoticesWhenAReadyShardFallsSilentWhileOthersForm) {
  StreamConfig with = config();
  with.connect_deadline = kStart + 60'000 * kMs;
  start(with);
  transmit();
  offer(2, kValues);
  transmit();
  welcome(welcome_body(proto::SessionState::kReady), shard(0));
  for (int i = 0; i < 51; ++i) {
    now += 100 * kMs;
    transmit();
    EXPECT_GT(stream->next_event(), now);
  }
  ASSERT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().message, "aggregator 10.0.0.1:4790 has been silent for 5000 ms");
}

}  // namespace
}  // namespace natagg::test
