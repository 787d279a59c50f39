// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A shard and hand-made packets for it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "support/packets.hpp"

namespace natagg::test {

using aggregator::Counter;
using aggregator::Peer;
using aggregator::Shard;
using aggregator::ShardConfig;
using aggregator::Time;
using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Header;
using proto::Type;

inline constexpr Time kMs = 1'000'000;
inline constexpr std::uint32_t kJob = 7;
inline constexpr std::uint16_t kValues = 128;
inline constexpr std::uint16_t kWindow = 4;
inline constexpr std::uint16_t kBothRanks[] = {0, 1};
inline constexpr std::uint32_t kFirst = 0xFFFF'FFFE;  // two chunks before the wrap

inline Peer peer_of(std::uint16_t rank) {
  return {.endpoint = {0x0A00'0002U + rank, static_cast<std::uint16_t>(50000 + rank)},
          .link = 0x1000U + rank,
          .interface = static_cast<std::uint16_t>(rank % 3)};
}

/// One datagram that the shard sent, to one destination.
struct Sent {
  Peer to;
  Packet packet;
  Header header;

  template <typename Body>
  [[nodiscard]] Body body() const {
    return proto::read_body<Body>(packet);
  }
  [[nodiscard]] std::vector<std::uint8_t> values() const {
    const auto values = proto::payload(packet);
    return {values.begin(), values.end()};
  }
};

inline std::vector<Sent> sent(std::span<const aggregator::Outgoing> outgoing) {
  std::vector<Sent> all;
  for (const auto& o : outgoing) {
    const Packet packet = wire(o);
    EXPECT_EQ(proto::validate(packet), proto::Reject::kNone);
    for (const Peer& to : o.to) all.push_back({to, packet, proto::read_header(packet)});
  }
  return all;
}

class ShardFixture : public ::testing::Test {
 protected:
  static ShardConfig config() {
    return {.index = 0,
            .shards = 1,
            .max_jobs = 2,
            .max_workers = 16,
            .max_window = kWindow,
            .max_values = 1408,
            .first_epoch = 41,
            .first_sequence = kFirst};
  }

  struct JoinSpec {
    std::uint16_t world = 2;
    std::uint16_t values = kValues;
    std::uint64_t instance = 100;
    std::uint64_t seed = 5;
    std::uint16_t window = kWindow;
    std::uint8_t rounding = 1;  // nearest, so that tests can name results
    std::int8_t shift = 0;
    std::uint8_t flags = 0;         // JoinFlag
    std::uint8_t header_flags = 0;  // Flag
    std::uint16_t shards = 1;
    std::uint32_t job = kJob;
    std::uint16_t stragglers = 0;  // ms
    std::uint16_t quorum = 0;
  };

  static Packet join_packet(std::uint16_t rank, const JoinSpec& spec) {
    Header header = proto::make_header(Type::kJoin);
    header.job = Be32{spec.job};
    header.rank = Be16{rank};
    header.shift = spec.shift;
    header.flags = spec.header_flags;
    proto::JoinBody body{};
    body.instance = Be64{spec.instance + rank};
    body.seed = Be64{spec.seed};
    body.world = Be16{spec.world};
    body.values = Be16{spec.values};
    body.window = Be16{spec.window};
    body.shards = Be16{spec.shards};
    body.rounding = spec.rounding;
    body.flags = spec.flags;
    body.stragglers = Be16{spec.stragglers};
    body.quorum = Be16{spec.quorum};
    return control_packet(header, body, proto::datagram_size(spec.values));
  }

  std::vector<Sent> join(std::uint16_t rank, const JoinSpec& spec) {
    return give(join_packet(rank, spec), peer_of(rank));
  }

  /// Joins every rank; the epoch of the ready session.
  std::uint32_t join_all(const JoinSpec& spec) {
    std::vector<Sent> last;
    for (std::uint16_t rank = 0; rank < spec.world; ++rank) last = join(rank, spec);
    if (last.empty() ||
        last.back().body<proto::WelcomeBody>().state != proto::SessionState::kReady) {
      ADD_FAILURE() << "the session did not become ready";
      return 0;
    }
    return last.back().header.epoch.value();
  }

  struct DataSpec {
    std::uint16_t rank = 0;
    std::uint32_t chunk = 0;  // counted from the session's first
    std::uint32_t epoch = 0;
    std::uint64_t length = 1000;
    std::uint32_t operation = 0;
    std::uint32_t job = kJob;
    proto::Reduction reduction = proto::Reduction::kSum;
  };

  static Header data_header(const DataSpec& spec) {
    Header header = proto::make_header(Type::kData);
    const std::uint32_t sequence = kFirst + spec.chunk;
    header.job = Be32{spec.job};
    header.epoch = Be32{spec.epoch};
    header.rank = Be16{spec.rank};
    header.sequence = Be32{sequence};
    header.slot = Be16{static_cast<std::uint16_t>(sequence % kWindow)};
    header.operation = Be32{spec.operation};
    header.element = Be64{0};
    header.fingerprint =
        Be64{proto::fingerprint({.length = spec.length, .reduction = spec.reduction})};
    header.flags = proto::kFlagNearest;
    return header;
  }

  std::vector<Sent> data(const DataSpec& spec, const std::vector<std::uint8_t>& values) {
    return give(value_packet(data_header(spec), values), peer_of(spec.rank));
  }

  std::vector<Sent> give(const Packet& packet, const Peer& from) {
    return sent(shard.receive(packet, from, now));
  }

  [[nodiscard]] std::uint64_t count(Counter counter) const { return shard.counters()[counter]; }

  Shard shard{config()};
  Time now = 0;
};

}  // namespace natagg::test
