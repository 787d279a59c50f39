// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A shard and the streams of two ranks, on a network that loses nothing and records all.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "support/packets.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::test {

using aggregator::Counter;
using worker::Stream;

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::uint32_t kJob = 7;
inline constexpr std::size_t kRanks = 2;
inline constexpr std::uint16_t kValues = 128;
inline const proto::Endpoint kShard{0x0A00'0001, 4790};

inline proto::JobKey key_of(std::uint32_t job, std::uint8_t fill) {
  return {job, std::vector(proto::kMinKeyBytes, static_cast<std::byte>(fill))};
}

inline proto::Secret entropy_of(std::uint8_t fill) {
  proto::Secret secret;
  secret.fill(fill);
  return secret;
}

class Rig {
 public:
  static aggregator::ShardConfig shard_config(std::uint8_t entropy = 1) {
    aggregator::ShardConfig config;
    config.max_jobs = 2;
    config.max_window = 4;
    config.max_values = kValues;
    config.first_epoch = 41;
    proto::JobKeys keys;
    keys.emplace(kJob, key_of(kJob, 0xAA));
    keys.emplace(kJob + 1, key_of(kJob + 1, 0xBB));
    config.keys = std::make_shared<proto::JobKeys>(std::move(keys));
    config.entropy = entropy_of(entropy);
    return config;
  }

  /// `life` makes instance and entropy differ between a rank's streams.
  static worker::StreamConfig stream_config(std::uint16_t rank, std::uint8_t life = 1,
                                            std::uint32_t job = kJob) {
    worker::StreamConfig config;
    config.aggregators = {kShard};
    config.job = job;
    config.rank = rank;
    config.world = kRanks;
    config.rounding = proto::Rounding::kNearest;
    config.instance = 100U * life + rank + 1;
    config.values = kValues;
    config.window = 4;
    config.key = std::make_shared<proto::JobKey>(key_of(job, job == kJob ? 0xAA : 0xBB));
    config.entropy = entropy_of(static_cast<std::uint8_t>(16 * life + rank));
    return config;
  }

  explicit Rig(const aggregator::ShardConfig& config = shard_config()) : shard(config) {}

  static aggregator::Peer peer_of(std::size_t rank) {
    return {.endpoint = {0x0A00'0102U + static_cast<std::uint32_t>(rank),
                         static_cast<std::uint16_t>(50'000 + rank)}};
  }

  void start(std::size_t rank, const worker::StreamConfig& config) {
    worker::StreamConfig timed = config;
    timed.connect_deadline = now + 10'000 * kMs;
    streams[rank].emplace(timed, now);
  }

  /// Delivers everything that `rank` sends, and the answers. `deaf` streams send nothing.
  void pump() {
    bool news = true;
    while (news) {
      news = false;
      for (std::size_t rank = 0; rank < kRanks; ++rank) {
        if (!streams[rank] || mute[rank]) continue;
        std::array<worker::Outgoing, 8> batch;
        while (const std::size_t count = streams[rank]->transmit(now, batch)) {
          news = true;
          std::vector<Packet> packets;
          for (const worker::Outgoing& out : std::span(batch).first(count)) {
            packets.emplace_back(out.datagram.begin(), out.datagram.end());
          }
          for (const Packet& packet : packets) {
            to_shard.push_back({packet, rank});
            deliver(shard.receive(packet, peer_of(rank), now));
          }
        }
      }
    }
  }

  void deliver(std::span<const aggregator::Outgoing> outgoing) {
    for (const aggregator::Outgoing& out : outgoing) {
      const Packet packet = wire(out);
      for (const aggregator::Peer& to : out.to) {
        const std::size_t rank = to.endpoint.port - 50'000U;
        to_worker.push_back({packet, rank});
        if (rank < kRanks && streams[rank]) streams[rank]->receive(packet, kShard, now);
      }
    }
  }

  void run_for(std::int64_t duration) {
    for (std::int64_t end = now + duration; now < end; now += 10 * kMs) {
      pump();
      deliver(shard.tick(now));
    }
  }

  void connect(std::uint8_t life = 1, std::uint32_t job = kJob) {
    for (std::uint16_t rank = 0; rank < kRanks; ++rank) start(rank, stream_config(rank, life, job));
    run_for(300 * kMs);
    for (auto& stream : streams) {
      ASSERT_EQ(stream->state(), Stream::State::kReady) << stream->failure().message;
    }
  }

  void submit(std::size_t rank, std::size_t length) {
    buffers[rank].assign(length, 1.0F);
    static_cast<void>(streams[rank]->submit({.operation = {.length = length},
                                             .in = buffers[rank].data(),
                                             .out = buffers[rank].data(),
                                             .deadline = worker::kNever}));
  }

  void close() {
    for (auto& stream : streams) stream->close(now);
    run_for(100 * kMs);
    for (auto& stream : streams) stream.reset();
  }

  [[nodiscard]] std::uint64_t count(Counter counter) const { return shard.counters()[counter]; }

  struct Recorded {
    Packet packet;
    std::size_t rank;  // its worker's
  };

  aggregator::Shard shard;
  std::array<std::optional<Stream>, kRanks> streams;
  std::array<bool, kRanks> mute{};
  std::array<std::vector<float>, kRanks> buffers;
  std::vector<Recorded> to_shard;
  std::vector<Recorded> to_worker;
  std::int64_t now = 1'000'000 * kMs;
};

}  // namespace natagg::test
