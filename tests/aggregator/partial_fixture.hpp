// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A session of three ranks that does not wait for stragglers.
#pragma once

#include <gtest/gtest.h>

#include "shard_fixture.hpp"

namespace natagg::test {

inline constexpr std::uint8_t kOne = 50;
inline constexpr std::uint8_t kTwo = 51;
inline constexpr std::uint8_t kFour = 52;
inline constexpr Time kDeadline = 30 * kMs;

class PartialTest : public ShardFixture {
 protected:
  /// Three ranks, of which two are enough.
  static JoinSpec terms() {
    return {.world = 3, .stragglers = static_cast<std::uint16_t>(kDeadline / kMs), .quorum = 2};
  }

  void start() {
    epoch_ = join_all(terms());
    for (std::uint16_t rank = 0; rank < 3; ++rank) heartbeat(rank);
  }

  std::vector<Sent> heartbeat(std::uint16_t rank) {
    Header header = proto::make_header(Type::kHeartbeat);
    header.job = Be32{kJob};
    header.epoch = Be32{epoch_};
    header.rank = Be16{rank};
    return give(control_packet(header), peer_of(rank));
  }

  std::vector<Sent> chunk(std::uint16_t rank, std::uint32_t number, std::uint8_t value,
                          proto::Reduction reduction = proto::Reduction::kPartialSum) {
    return data({.rank = rank, .chunk = number, .epoch = epoch_, .reduction = reduction}, {value});
  }

  std::vector<Sent> tick() {
    std::vector<Sent> all;
    for (;;) {
      const auto some = sent(shard.tick(now));
      if (some.empty()) return all;
      all.insert(all.end(), some.begin(), some.end());
    }
  }

  /// Lets the deadline pass in ticks, without the pause that a shard would forgive.
  std::vector<Sent> pass_deadline() {
    now += kDeadline;
    return tick();
  }

  static std::vector<std::uint8_t> ranks_in(const Sent& packet) {
    EXPECT_EQ(packet.header.type, Type::kPartial);
    const auto ranks = proto::rank_set(packet.packet);
    return {ranks.begin(), ranks.end()};
  }

  /// The one packet that this is, a partial result of `value` and the ranks of bits `ranks`.
  static void expect_partial(const std::vector<Sent>& packets, std::size_t count,
                             std::uint8_t value, std::uint8_t ranks) {
    ASSERT_EQ(packets.size(), count);
    for (const Sent& packet : packets) {
      EXPECT_EQ(packet.values(), std::vector{value});
      EXPECT_EQ(ranks_in(packet), std::vector{ranks});
    }
  }

  /// The one packet says that the rank's chunk of that number is lost, and no other.
  static void expect_lost_alone(const std::vector<Sent>& packets, std::uint32_t number) {
    ASSERT_EQ(packets.size(), 1U);
    ASSERT_EQ(packets[0].header.type, Type::kNack);
    EXPECT_EQ(packets[0].header.sequence.value(), kFirst + number);
    EXPECT_EQ(packets[0].body<proto::NackBody>().lacking.value(), 1U);
  }

  std::vector<Sent> leave(std::uint16_t rank) {
    Header header = proto::make_header(Type::kLeave);
    header.job = Be32{kJob};
    header.epoch = Be32{epoch_};
    header.rank = Be16{rank};
    return give(control_packet(header, leave_body(proto::LeaveReason::kClosed)), peer_of(rank));
  }

  std::uint32_t epoch_ = 0;
};

}  // namespace natagg::test
