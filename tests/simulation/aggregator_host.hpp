// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A virtual machine that runs one aggregator: the shipped Shard, as many as it is to have, on
// consecutive ports. It can vanish, and it can restart with empty memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "simulation/clock.hpp"
#include "simulation/invariants.hpp"
#include "simulation/network.hpp"

namespace natagg::simulation {

class AggregatorHost {
 public:
  /// `config` is every shard's, but for index and shards. `invariants` outlives the host.
  AggregatorHost(const aggregator::ShardConfig& config, std::uint16_t shards,
                 const proto::Endpoint& first, Time start, Invariants& invariants);

  void deliver(const Packet& packet, Time now, Network& network);

  /// When tick() is next due.
  [[nodiscard]] Time next_tick() const { return alive_ ? next_tick_ : kNever; }
  void tick(Time now, Network& network);

  void vanish() {
    alive_ = false;
    inbox_.clear();
  }
  /// Stands still until then, as an operating system deschedules a process; what arrives waits.
  void pause(Time until) { paused_until_ = next_tick_ = until; }
  /// Its clock is ahead of what it was, from now on.
  void leap(Time by) { clock_.leap(by); }
  /// Its clock stands until then, with all that goes by it.
  void stand(Time now, Time until) {
    clock_.stand(now, until);
    next_tick_ = std::max(next_tick_, until);
  }
  [[nodiscard]] bool alive() const { return alive_; }
  /// Comes back, having forgotten everything.
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
  void take(const Packet& packet, Time now, Network& network);
  void send(std::size_t shard, std::span<const aggregator::Outgoing> outgoing, Time now,
            Network& network);
  [[nodiscard]] proto::Endpoint endpoint(std::size_t shard) const {
    return {first_.address, static_cast<std::uint16_t>(first_.port + shard)};
  }

  aggregator::ShardConfig config_;
  std::uint16_t shard_count_;
  proto::Endpoint first_;
  std::vector<aggregator::Shard> shards_;
  std::uint8_t lives_ = 0;
  Time next_tick_;
  Clock clock_;
  Invariants* invariants_;
  bool alive_ = true;
  Time paused_until_ = 0;
  std::vector<Packet> inbox_;        // what arrived during a pause
  std::vector<std::byte> datagram_;  // being put together
  std::vector<std::string> violations_;
};

}  // namespace natagg::simulation
