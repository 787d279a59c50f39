// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a shard spends on those it has no reason to trust: its memory stays within what the
// configuration allows, and nobody can keep a job from running or from forming anew.
#include <gtest/gtest.h>

#include <random>

#include "allocations.hpp"
#include "shard_fixture.hpp"

namespace natagg::test {
namespace {

using proto::RefuseBody;
using proto::RefuseReason;

constexpr std::uint8_t kOne = 50;

class FloodTest : public ShardFixture {
 protected:
  static Peer stranger(std::uint32_t number) {
    return {.endpoint = {0x0B00'0000U + number, static_cast<std::uint16_t>(number | 1)},
            .link = 0xBAD};
  }

  /// A JOIN for any job, of any size and rank, by any instance.
  Packet any_join() {
    const auto world = static_cast<std::uint16_t>(random_() % 20);
    const auto rank = static_cast<std::uint16_t>(random_() % 20);
    Packet packet = join_packet(rank, {.world = world,
                                       .values = static_cast<std::uint16_t>(random_() % 12 * 128),
                                       .instance = random_() | 1,
                                       .window = static_cast<std::uint16_t>(random_() % 9),
                                       .shards = static_cast<std::uint16_t>(random_() % 3),
                                       .job = static_cast<std::uint32_t>(random_() % 100'000)});
    packet.resize(proto::datagram_size(1536));
    return packet;
  }

  /// A session packet of `job` with this epoch and rank, as a stranger would copy it.
  static Packet copied(Type type, std::uint32_t epoch, std::uint16_t rank) {
    Header header = data_header({.rank = rank, .epoch = epoch});
    header.type = type;
    if (type == Type::kData) return value_packet(header, std::vector<std::uint8_t>(kValues, kOne));
    Packet packet = control_packet(header);
    packet.resize(sizeof(Header) + 40);
    return packet;
  }

  std::mt19937_64 random_{7};
};

TEST_F(FloodTest, AJoinFloodHoldsNoMoreThanTheConfiguredJobs) {
  const std::size_t before = live_bytes();
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    now += 10'000;
    static_cast<void>(shard.receive(any_join(), stranger(i), now));
    if (i % 100 == 0) static_cast<void>(sent(shard.tick(now)));
    ASSERT_LE(shard.usage().jobs, 2U);
    most = std::max(most, live_bytes() - before);
  }
  // Of two jobs a session that runs and one that forms, of 16 members and 4 slots of 1408 values.
  constexpr std::size_t kSession = 4 * 1408 * (8 + 2 + 1 + 2) + 16 * 4 * 64 + 4096;
  EXPECT_LE(most, 2 * 2 * kSession);
  EXPECT_EQ(count(Counter::kAccepted), 100'000U);
}

TEST_F(FloodTest, AJobFormsOnceAFloodIsOver) {
  for (std::uint32_t i = 0; i < 1000; ++i) {
    static_cast<void>(shard.receive(any_join(), stranger(i), now += 1000));
  }
  EXPECT_EQ(shard.usage().jobs, 2U);
  const auto refusal = join(0, {});
  ASSERT_EQ(refusal.size(), 1U);
  EXPECT_EQ(refusal[0].body<RefuseBody>().reason, RefuseReason::kTooManyJobs);
  EXPECT_EQ(refusal[0].body<RefuseBody>().ours.value(), 2U);
  for (int i = 0; i < 30; ++i) {
    now += 100 * kMs;
    static_cast<void>(sent(shard.tick(now)));
  }
  EXPECT_EQ(shard.usage().jobs, 0U);
  EXPECT_NE(join_all({}), 0U);
}

TEST_F(FloodTest, ARunningJobGoesOnUnderAFloodOfItsOwnPacketsFromStrangers) {
  const std::uint32_t epoch = join_all({});
  const std::vector<std::uint8_t> ones(kValues, kOne);
  for (std::uint32_t chunk = 0; chunk < 50; ++chunk) {
    for (std::uint32_t i = 0; i < 20; ++i) {
      const auto rank = static_cast<std::uint16_t>(i % 2);
      for (const Type type : {Type::kData, Type::kHeartbeat, Type::kLeave}) {
        for (const Sent& answer : give(copied(type, epoch, rank), stranger(i))) {
          EXPECT_EQ(answer.header.type, Type::kLeave);  // echoed to anybody
          EXPECT_EQ(answer.to.endpoint, stranger(i).endpoint);
        }
      }
      const auto refusal = give(join_packet(rank, {.instance = 500 + i}), stranger(i));
      ASSERT_EQ(refusal.size(), 1U);
      EXPECT_EQ(refusal[0].body<RefuseBody>().reason, RefuseReason::kJobRunning);
    }
    EXPECT_TRUE(data({.rank = 0, .chunk = chunk, .epoch = epoch}, ones).empty());
    const auto results = data({.rank = 1, .chunk = chunk, .epoch = epoch}, ones);
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].values(), std::vector<std::uint8_t>(kValues, kOne + 1));
  }
  EXPECT_EQ(count(Counter::kWrongSource), 50U * 20 * 2);
  EXPECT_EQ(count(Counter::kContributions), 100U);
  EXPECT_EQ(count(Counter::kLeaves) + count(Counter::kAborts), 0U);
}

TEST_F(FloodTest, AStrangersPacketAllocatesNothingUnlessItFormsASession) {
  const std::uint32_t epoch = join_all({});
  std::vector<Packet> packets;
  for (const Type type : {Type::kData, Type::kHeartbeat, Type::kLeave}) {
    packets.push_back(copied(type, epoch, 0));
    packets.push_back(copied(type, epoch + 1, 0));
    packets.push_back(copied(type, epoch, 200));
  }
  packets.push_back(join_packet(0, {.instance = 500}));
  packets.push_back(join_packet(3, {.world = 2}));
  packets.push_back(control_packet(proto::make_header(Type::kHello), proto::HelloBody{}, 100));
  packets.emplace_back(60);
  const std::size_t before = allocations();
  for (const Packet& packet : packets) {
    static_cast<void>(shard.receive(packet, stranger(1), now));
  }
  EXPECT_EQ(allocations(), before);
}

TEST_F(FloodTest, NoAnswerToAStrangerIsMuchLongerThanItsQuestion) {
  const std::uint32_t epoch = join_all({});
  constexpr std::size_t kAbort = sizeof(Header) + sizeof(proto::AbortBody);
  for (std::uint8_t type = 0; type < 16; ++type) {
    for (const std::uint32_t of : {epoch, epoch + 1, 0U}) {
      const Packet packet = copied(static_cast<Type>(type), of, 0);
      const auto answers = give(packet, stranger(1));
      ASSERT_LE(answers.size(), 1U);
      for (const Sent& answer : answers) {
        EXPECT_LE(answer.packet.size(), std::max(packet.size(), kAbort));
      }
    }
  }
  Packet packet = join_packet(0, {.instance = 500});
  packet.resize(packet.size() - 1);
  EXPECT_TRUE(give(packet, stranger(1)).empty());  // shorter than the packets it proposes
  EXPECT_EQ(count(Counter::kUnpadded), 1U);
}

TEST_F(FloodTest, RefusesForWantOfMemoryAndRecovers) {
  const auto welcome = join(0, {});
  ASSERT_EQ(welcome.size(), 1U);
  {
    const FailingAllocations failing;
    const auto refusals = join(1, {});
    ASSERT_EQ(refusals.size(), 2U);  // to both, of whom the first was welcome
    for (const Sent& refusal : refusals) {
      ASSERT_EQ(refusal.header.type, Type::kRefuse);
      EXPECT_EQ(refusal.body<RefuseBody>().reason, RefuseReason::kNoMemory);
    }
  }
  EXPECT_EQ(count(Counter::kRefusals), 1U);
  static_cast<void>(sent(shard.tick(now)));
  EXPECT_EQ(shard.usage().jobs, 0U);
  EXPECT_NE(join_all({}), 0U);
}

}  // namespace
}  // namespace natagg::test
