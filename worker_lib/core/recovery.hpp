// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Finds out that the aggregator of a place of the pool is lost, and where the place is joined
// again: there, when the aggregator restarted; at the next one that lives, when it is silent; or
// where the other ranks already are. Places are those that the stream serves, as it counts them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker_lib/core/channel.hpp"
#include "worker_lib/core/guard.hpp"
#include "worker_lib/core/joining.hpp"
#include "worker_lib/core/pool.hpp"

namespace natagg::worker {

class Recovery {
 public:
  /// All are the stream's and outlive this: one joining a place, and its channel once it was ready.
  Recovery(const StreamConfig& config, std::optional<Guard>& guard, std::vector<Joining>& joinings,
           std::vector<std::unique_ptr<Channel>>& channels)
      : config_(config), guard_(guard), joinings_(joinings), channels_(channels) {}

  /// The next aggregator of the pool.
  void add(const proto::Endpoint& first, std::uint16_t shards) { pool_.add(first, shards); }

  /// Moves the places of silent aggregators; why the stream fails, when nothing is left to do.
  [[nodiscard]] std::optional<Failure> watch(Time now);

  /// The aggregator that has `place` does not know the session.
  void restart(std::size_t place, Time now);

  /// Whether the stream serves the place with this number in the pool.
  [[nodiscard]] bool serves(std::uint16_t index) const;

  /// A MOVE. False when it does not concern this job or stream, or is old.
  bool on_move(const proto::MoveBody& body, const proto::Endpoint& source, Time now);

 private:
  [[nodiscard]] std::optional<Failure> watch(std::size_t place, Time now);
  void join_again(std::size_t place, std::uint16_t moves, Time now);
  [[nodiscard]] Time quiet(std::size_t place, Time now) const;
  [[nodiscard]] std::optional<std::uint16_t> next_move(std::size_t place, Time now) const;
  [[nodiscard]] bool is_silent(std::size_t aggregator, Time now) const;
  [[nodiscard]] std::uint16_t index(std::size_t place) const {
    return joinings_[place].session().index;
  }

  const StreamConfig& config_;
  std::optional<Guard>& guard_;
  std::vector<Joining>& joinings_;
  std::vector<std::unique_ptr<Channel>>& channels_;
  Pool pool_;
};

}  // namespace natagg::worker
