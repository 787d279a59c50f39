// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A virtual machine that runs one aggregator: the shipped Shard, as many as it is to have, on
// consecutive ports. It can vanish, and it can restart with empty memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "simulation/network.hpp"

namespace natagg::simulation {

class AggregatorHost {
 public:
  /// `config` is every shard's, but for index and shards.
  AggregatorHost(const aggregator::ShardConfig& config, std::uint16_t shards,
                 const proto::Endpoint& first, Time start);

  void deliver(const Packet& packet, Time now, Network& network);

  /// When tick() is next due.
  [[nodiscard]] Time next_tick() const { return alive_ ? next_tick_ : kNever; }
  void tick(Time now, Network& network);

  void vanish() { alive_ = false; }
  /// Comes back at once, having forgotten everything.
  void restart(Time now, std::uint32_t first_epoch);

  [[nodiscard]] const proto::Endpoint& first() const { return first_; }
  [[nodiscard]] bool owns(const proto::Endpoint& endpoint) const;
  [[nodiscard]] const std::vector<aggregator::Shard>& shards() const { return shards_; }
  /// No jobs, sessions or open slots in any shard.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::uint64_t count(aggregator::Counter counter) const;
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

 private:
  void start(std::uint32_t first_epoch);
  void send(std::size_t shard, std::span<const aggregator::Outgoing> outgoing, Time now,
            Network& network);

  aggregator::ShardConfig config_;
  std::uint16_t shard_count_;
  proto::Endpoint first_;
  std::vector<aggregator::Shard> shards_;
  std::uint8_t lives_ = 0;
  Time next_tick_;
  bool alive_ = true;
  std::vector<std::byte> datagram_;  // being put together
  std::vector<std::string> violations_;
};

}  // namespace natagg::simulation
