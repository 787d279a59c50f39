// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What must hold after every single step of a simulated world, whatever its faults: no result is
// overwritten that somebody may still ask for, and nothing grows beyond its bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "proto/packet.hpp"
#include "simulation/network.hpp"

namespace natagg::simulation {

class Invariants {
 public:
  /// `lives` says whether a worker with that address is running its job.
  explicit Invariants(std::function<bool(const proto::Endpoint&)> lives)
      : lives_(std::move(lives)) {}

  // --- What the scenario needs ---

  void expect_places(std::size_t shards) { places_ += shards; }
  /// Where a job `leaves_behind` ranks that are very late, whether one was is for the results to
  /// show.
  void expect_worker(std::uint32_t job, std::uint16_t world, std::uint16_t window,
                     bool leaves_behind);

  // --- Steps ---

  /// A shard of `config` has taken a packet or a tick, and answers `outgoing`.
  void after_step(const proto::Endpoint& shard, const aggregator::ShardConfig& config,
                  const aggregator::Shard::Usage& usage,
                  std::span<const aggregator::Outgoing> outgoing);

  /// `shard` has added this DATA of `worker` to its chunk.
  void contributed(const proto::Endpoint& shard, const proto::Endpoint& worker,
                   const proto::Header& data);

  /// `worker` has taken this RESULT of `shard` in.
  void answered(const proto::Endpoint& shard, const proto::Endpoint& worker,
                const proto::Header& result);

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

 private:
  /// Of a ready session: which chunks are open or were last in each slot, and the results that each
  /// member has, in a ring that holds more than can be asked for.
  struct Session {
    std::uint32_t window = 0;  // 0: not announced
    std::uint32_t first_sequence = 0;
    std::vector<std::int64_t> opened;  // sequence, -1 for none
    std::map<proto::Endpoint, std::vector<std::int64_t>> results;
  };
  using Key = std::tuple<proto::Endpoint, std::uint32_t, std::uint32_t>;  // shard, job, epoch

  void announced(const proto::Endpoint& shard, const proto::Header& header,
                 const proto::WelcomeBody& body);
  Session* find(const proto::Endpoint& shard, const proto::Header& header);
  std::vector<std::int64_t>& results_of(Session& session, const proto::Endpoint& worker);
  void violation(const proto::Endpoint& shard, const std::string& text);

  std::function<bool(const proto::Endpoint&)> lives_;
  std::size_t places_ = 0;
  std::set<std::uint32_t> jobs_;
  std::set<std::uint32_t> leaving_behind_;
  std::uint16_t largest_world_ = 1;
  std::uint16_t largest_window_ = 1;
  std::map<Key, Session> sessions_;
  std::vector<std::string> violations_;
};

}  // namespace natagg::simulation
