// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Joining with keys: who gets in, what the others are told, and what nobody can do without a key.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "authentication/rig.hpp"

namespace natagg::test {
namespace {

using proto::Type;

Type type_of(const Packet& packet) {
  return proto::read_header(packet).type;
}

std::vector<Rig::Recorded> of_type(const std::vector<Rig::Recorded>& all, Type type) {
  std::vector<Rig::Recorded> some;
  std::ranges::copy_if(all, std::back_inserter(some), [type](const Rig::Recorded& recorded) {
    return type_of(recorded.packet) == type;
  });
  return some;
}

/// Connects rank 0 with `config` until it has failed; why it has.
worker::Failure failure_of(Rig& rig, const worker::StreamConfig& config) {
  rig.start(0, config);
  rig.run_for(3'000 * kMs);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kFailed);
  return rig.streams[0]->failure();
}

TEST(Handshake, RanksWithTheKeyReduceAndEveryPacketIsAuthenticated) {
  Rig rig;
  rig.connect();
  for (std::size_t rank = 0; rank < kRanks; ++rank) rig.submit(rank, 1'000);
  rig.run_for(100 * kMs);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(rig.streams[rank]->poll_completion()->status, NATAGG_OK);
    EXPECT_EQ(rig.buffers[rank], std::vector<float>(1'000, 2.0F));
  }
  for (const auto* packets : {&rig.to_shard, &rig.to_worker}) {
    for (const Rig::Recorded& recorded : *packets) {
      EXPECT_NE(proto::read_header(recorded.packet).flags & proto::kFlagAuthenticated, 0)
          << proto::to_string(proto::read_header(recorded.packet));
    }
  }
  EXPECT_EQ(rig.count(Counter::kBadMac) + rig.count(Counter::kReplayed), 0U);
}

TEST(Handshake, TheWrongKeyIsRefusedInWords) {
  Rig rig;
  worker::StreamConfig config = Rig::stream_config(0);
  config.key = std::make_shared<proto::JobKey>(key_of(kJob, 0xCC));
  const worker::Failure failure = failure_of(rig, config);
  EXPECT_EQ(failure.status, NATAGG_REFUSED);
  EXPECT_EQ(failure.message,
            "key of job 7 refused by aggregator 10.0.0.1:4790: it has another one for this job");
  EXPECT_GT(rig.count(Counter::kWrongKey), 0U);
  EXPECT_EQ(rig.shard.usage().jobs, 0U);
}

TEST(Handshake, AKeyIsRefusedInWordsWhereTheJobHasNone) {
  for (const bool no_keys : {false, true}) {
    aggregator::ShardConfig shard = Rig::shard_config();
    if (no_keys) shard.keys = nullptr;
    Rig rig(shard);
    worker::StreamConfig config = Rig::stream_config(0);
    config.job = 99;
    config.key = std::make_shared<proto::JobKey>(key_of(99, 0xCC));
    const worker::Failure failure = failure_of(rig, config);
    EXPECT_EQ(failure.status, NATAGG_REFUSED);
    EXPECT_EQ(failure.message,
              "key of job 99 refused by aggregator 10.0.0.1:4790: it has none for this job; "
              "key_directory is the place");
    EXPECT_GT(rig.count(Counter::kUnauthenticated), 0U);
  }
}

TEST(Handshake, AWorkerWithoutTheKeyIsToldThatTheJobNeedsOne) {
  Rig rig;
  worker::StreamConfig config = Rig::stream_config(0);
  config.key = nullptr;
  const worker::Failure failure = failure_of(rig, config);
  EXPECT_EQ(failure.status, NATAGG_REFUSED);
  EXPECT_EQ(failure.message,
            "job 7 needs a key at aggregator 10.0.0.1:4790, and this rank has none: give it the "
            "key file");
  EXPECT_GT(rig.count(Counter::kUnauthenticated), 0U);
}

TEST(Handshake, JobsWithoutAKeyRunBesideKeyedOnesOnlyWhereThatIsConfigured) {
  for (const bool allowed : {false, true}) {
    aggregator::ShardConfig shard = Rig::shard_config();
    shard.jobs_without_key = allowed;
    Rig rig(shard);
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
      worker::StreamConfig config = Rig::stream_config(rank);
      config.job = 99;
      config.key = nullptr;
      rig.start(rank, config);
    }
    rig.run_for(300 * kMs);
    EXPECT_EQ(rig.streams[0]->state(), allowed ? Stream::State::kReady : Stream::State::kFailed);
  }
}

/// As from an aggregator that has another key for the job, to rank 0.
Packet wrong_key() {
  proto::Header header = proto::make_header(Type::kRefuse);
  header.job = proto::Be32{kJob};
  proto::RefuseBody body{};
  body.instance = proto::Be64{Rig::stream_config(0).instance};
  body.reason = proto::RefuseReason::kWrongKey;
  return control_packet(header, body);
}

TEST(Handshake, ARefusalForTheKeyIsNotBelievedWhenTheAggregatorProvesOtherwise) {
  Rig rig;
  rig.start(0, Rig::stream_config(0));
  const Packet lie = wrong_key();
  for (int i = 0; i < 200; ++i) {
    rig.streams[0]->receive(lie, kShard, rig.now);
    rig.run_for(10 * kMs);
  }
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kConnecting);
  rig.start(1, Rig::stream_config(1));
  rig.run_for(300 * kMs);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kReady);
}

TEST(Handshake, ARefusalForTheKeyIsNotBelievedOfAnAggregatorThatHasProvedIt) {
  Rig rig;
  rig.start(0, Rig::stream_config(0));
  rig.run_for(100 * kMs);
  // It may be about a JOIN that arrived damaged; nothing more need come until all have joined.
  rig.streams[0]->receive(wrong_key(), kShard, rig.now);
  rig.mute[0] = true;
  rig.run_for(1'100 * kMs);
  rig.mute[0] = false;
  rig.run_for(500 * kMs);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kConnecting);
  rig.start(1, Rig::stream_config(1));
  rig.run_for(300 * kMs);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kReady) << rig.streams[0]->failure().message;
}

TEST(Handshake, NothingIsKeptForAJoinThatProvesTheKeyButNotThatItIsNew) {
  Rig rig;
  rig.connect();
  const std::vector<Rig::Recorded> joins = of_type(rig.to_shard, Type::kJoin);
  rig.close();
  rig.run_for(10'000 * kMs);
  ASSERT_EQ(rig.shard.usage().jobs, 0U);
  const std::uint64_t before = rig.count(Counter::kJoins);
  for (int i = 0; i < 1'000; ++i) {
    const Rig::Recorded& join = joins[static_cast<std::size_t>(i) % joins.size()];
    const auto answer = rig.shard.receive(join.packet, Rig::peer_of(join.rank), rig.now);
    ASSERT_EQ(answer.size(), 1U);
    const Packet packet = wire(answer.front());
    EXPECT_EQ(type_of(packet), Type::kChallenge);
    EXPECT_LT(packet.size(), join.packet.size()) << "no amplification";
  }
  EXPECT_EQ(rig.shard.usage().jobs, 0U);
  EXPECT_EQ(rig.count(Counter::kJoins), before);
  EXPECT_GE(rig.count(Counter::kChallenges), 1'000U);
}

TEST(Handshake, AChallengeIsGoodForItsQuestionerAlone) {
  Rig rig;
  rig.connect();
  const Packet join = of_type(rig.to_shard, Type::kJoin).back().packet;
  const std::uint64_t before = rig.count(Counter::kJoins);
  const aggregator::Peer other{.endpoint = {0x0A00'0909, 1234}};
  const auto answer = rig.shard.receive(join, other, rig.now);
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(type_of(wire(answer.front())), Type::kChallenge);
  EXPECT_EQ(rig.count(Counter::kJoins), before);
}

TEST(Handshake, AMembersJoinDoesNotCountTwice) {
  Rig rig;
  rig.connect();
  const Rig::Recorded join = of_type(rig.to_shard, Type::kJoin).back();
  EXPECT_TRUE(rig.shard.receive(join.packet, Rig::peer_of(join.rank), rig.now).empty());
  EXPECT_EQ(rig.count(Counter::kReplayed), 1U);
}

TEST(Handshake, AJoinIsNotTakenAgainWhenAnotherHasHadItsPlaceSince) {
  Rig rig;
  const auto config_of = [](std::uint16_t rank, std::uint8_t life) {
    worker::StreamConfig config = Rig::stream_config(rank, life);
    config.world = 3;  // of which one never comes
    return config;
  };
  rig.start(1, config_of(1, 1));  // keeps the session forming
  rig.start(0, config_of(0, 1));
  rig.run_for(50 * kMs);
  const auto last =
      std::find_if(rig.to_shard.rbegin(), rig.to_shard.rend(), [](const Rig::Recorded& recorded) {
        return recorded.rank == 0 && proto::read_header(recorded.packet).type == Type::kJoin;
      });
  ASSERT_NE(last, rig.to_shard.rend());
  const Packet recorded = last->packet;
  rig.streams[0].reset();
  rig.run_for(1'100 * kMs);  // the shard gives its place away
  rig.start(0, config_of(0, 2));
  rig.run_for(50 * kMs);
  rig.streams[0].reset();
  rig.run_for(1'100 * kMs);

  const std::uint64_t joins = rig.count(Counter::kJoins);
  const std::uint64_t replayed = rig.count(Counter::kReplayed);
  EXPECT_TRUE(rig.shard.receive(recorded, Rig::peer_of(0), rig.now).empty());
  EXPECT_EQ(rig.count(Counter::kJoins), joins);
  EXPECT_EQ(rig.count(Counter::kReplayed), replayed + 1);
}

TEST(Handshake, AJoinOfALargerWorldIsRefusedWhileTheJobRuns) {
  Rig rig;
  rig.connect();
  worker::StreamConfig config = Rig::stream_config(0, 2);
  config.rank = 900;
  config.world = 1'000;
  rig.start(0, config);
  rig.run_for(100 * kMs);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kConnecting);
  EXPECT_GT(rig.count(Counter::kRefusals), 0U);
  EXPECT_EQ(rig.shard.usage().ready_sessions, 1U);
}

TEST(Handshake, AWelcomeOfAnEarlierLifeIsNotTakenEvenForTheSameInstance) {
  Rig rig;
  rig.connect(1);
  const std::vector<Rig::Recorded> earlier = rig.to_worker;
  Rig restarted(Rig::shard_config(2));
  worker::StreamConfig config = Rig::stream_config(0, 1);
  config.entropy = entropy_of(0x99);
  restarted.start(0, config);
  restarted.run_for(100 * kMs);
  const std::uint64_t before = restarted.streams[0]->stats().rejected_packets;
  std::size_t count = 0;
  for (const Rig::Recorded& recorded : earlier) {
    if (recorded.rank != 0) continue;
    restarted.streams[0]->receive(recorded.packet, kShard, restarted.now);
    ++count;
  }
  EXPECT_GT(count, 3U);
  EXPECT_EQ(restarted.streams[0]->stats().rejected_packets, before + count);
  EXPECT_EQ(restarted.streams[0]->state(), Stream::State::kConnecting);
}

TEST(Handshake, DataOfAnEarlierLifeIsNotTakenEvenInTheSameEpoch) {
  Rig rig;
  rig.connect(1);
  rig.mute[1] = true;
  rig.submit(0, 500);
  rig.run_for(20 * kMs);
  const std::vector<Rig::Recorded> data = of_type(rig.to_shard, Type::kData);
  ASSERT_EQ(data.size(), 4U);
  Rig restarted(Rig::shard_config(2));
  restarted.connect(1);  // equal instances and entropy of the workers, equal epoch
  for (const Rig::Recorded& recorded : data) {
    EXPECT_TRUE(restarted.shard.receive(recorded.packet, Rig::peer_of(recorded.rank), restarted.now)
                    .empty());
  }
  EXPECT_EQ(restarted.count(Counter::kBadMac), 4U);
  EXPECT_EQ(restarted.count(Counter::kContributions), 0U);
}

TEST(Handshake, ARestartedShardIsBelievedThatItDoesNotKnowTheSession) {
  Rig rig;
  rig.connect();
  rig.shard = aggregator::Shard(Rig::shard_config(2));
  rig.to_worker.clear();
  const std::uint64_t before = rig.streams[0]->stats().rejected_packets;
  rig.mute[1] = true;
  rig.submit(0, 100);
  rig.pump();
  const std::vector<Rig::Recorded> aborts = of_type(rig.to_worker, Type::kAbort);
  ASSERT_EQ(aborts.size(), 1U);
  EXPECT_EQ(proto::read_body<proto::AbortBody>(aborts[0].packet).reason,
            proto::AbortReason::kUnknownSession);
  EXPECT_EQ(rig.streams[0]->stats().rejected_packets, before);
  EXPECT_GT(rig.count(Counter::kUnknownSession), 0U);
}

TEST(Handshake, AnAbortThatAnswersNothingSentLatelyIsNotBelieved) {
  Rig rig;
  rig.connect();
  // Somebody makes up a packet and has another aggregator of the pool say that it knows no session.
  rig.mute[1] = true;
  rig.submit(0, 100);
  rig.pump();
  Packet data = of_type(rig.to_shard, Type::kData).back().packet;
  data[data.size() - sizeof(proto::Trailer)] ^= std::byte{1};
  aggregator::Shard other(Rig::shard_config(2));
  const auto answer = other.receive(data, Rig::peer_of(0), rig.now);
  ASSERT_EQ(answer.size(), 1U);
  ASSERT_EQ(type_of(wire(answer.front())), Type::kAbort);
  const std::uint64_t before = rig.streams[0]->stats().rejected_packets;
  rig.streams[0]->receive(wire(answer.front()), kShard, rig.now);
  EXPECT_EQ(rig.streams[0]->stats().rejected_packets, before + 1);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kReady);
}

TEST(Handshake, PacketsOfNoSessionAreAnsweredRarely) {
  Rig rig;
  rig.connect();
  const Packet beat = of_type(rig.to_shard, Type::kHeartbeat).back().packet;
  aggregator::Shard other(Rig::shard_config(2));
  std::size_t answers = 0;
  for (int i = 0; i < 1'000; ++i) {
    answers += other.receive(beat, Rig::peer_of(0), rig.now + i * kMs / 100).size();
  }
  EXPECT_EQ(answers, 10U);
}

TEST(Handshake, ALongWaitForTheOthersOutlivesChallenges) {
  Rig rig;
  rig.start(0, Rig::stream_config(0));
  rig.run_for(9'000 * kMs);
  EXPECT_GE(rig.count(Counter::kChallenges), 2U);
  EXPECT_EQ(rig.shard.usage().jobs, 1U) << "it kept its place all the time";
  rig.start(1, Rig::stream_config(1));
  rig.run_for(300 * kMs);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kReady);
}

TEST(Handshake, TwoJobsWithTheirOwnKeysShareAShard) {
  Rig rig;
  rig.connect(1, kJob);
  Rig other;  // its streams, at the first rig's shard
  for (std::uint16_t rank = 0; rank < kRanks; ++rank) {
    worker::StreamConfig config = Rig::stream_config(rank, 2, kJob + 1);
    rig.start(rank, config);
  }
  rig.run_for(300 * kMs);
  EXPECT_EQ(rig.streams[0]->state(), Stream::State::kReady);
  EXPECT_EQ(rig.shard.usage().ready_sessions, 2U);
}

}  // namespace
}  // namespace natagg::test
