// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Which shard of which aggregator has a place of the pool, at home and after any number of moves.
// Every rank computes the same, so that a number of moves is all they need to agree on.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/endpoint.hpp"

namespace natagg::worker {

class Pool {
 public:
  /// The next aggregator of the pool, by its first shard and how many it has.
  void add(const proto::Endpoint& first, std::uint16_t shards) {
    for (std::uint16_t i = 0; i < shards; ++i) {
      homes_.push_back({static_cast<std::uint16_t>(aggregators_.size()), i});
    }
    aggregators_.push_back({first, shards});
  }

  [[nodiscard]] std::uint16_t places() const { return static_cast<std::uint16_t>(homes_.size()); }
  [[nodiscard]] std::uint16_t aggregators() const {
    return static_cast<std::uint16_t>(aggregators_.size());
  }

  /// The aggregator that has `place` after `moves`, each to the next in the pool.
  [[nodiscard]] std::size_t aggregator(std::uint16_t place, unsigned moves) const {
    return (homes_[place].aggregator + moves) % aggregators_.size();
  }

  [[nodiscard]] proto::Endpoint shard(std::uint16_t place, unsigned moves) const {
    const Aggregator& there = aggregators_[aggregator(place, moves)];
    return {there.first.address,
            static_cast<std::uint16_t>(there.first.port + homes_[place].shard % there.shards)};
  }

 private:
  struct Aggregator {
    proto::Endpoint first;
    std::uint16_t shards = 0;
  };
  struct Home {
    std::uint16_t aggregator = 0;
    std::uint16_t shard = 0;
  };

  std::vector<Aggregator> aggregators_;
  std::vector<Home> homes_;
};

}  // namespace natagg::worker
