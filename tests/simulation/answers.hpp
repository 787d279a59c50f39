// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the aggregators of a world say: for each chunk, which ranks its results are of. Results that
// may be partial have to be judged by that.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "simulation/world.hpp"

namespace natagg::simulation {

using Ranks = std::vector<std::uint16_t>;

class Answers {
 public:
  /// Listens from now on. `world` outlives this, and this the rest of its run.
  Answers(World& world, std::size_t ranks);
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  /// To one chunk.
  struct Chunk {
    std::uint16_t count = 0;  // values
    std::set<Ranks> ranks;    // all that it was ever answered with
  };

  /// Null when the chunk was never answered.
  [[nodiscard]] const Chunk* find(std::uint32_t operation, std::uint64_t element) const;

  /// A chunk was answered with different ranks, which only the loss of an aggregator excuses.
  [[nodiscard]] bool contradictory() const;

  /// Answers of different ranks count each.
  [[nodiscard]] std::uint64_t partial_chunks() const { return partial_chunks_; }

  /// Another job of the same number begins.
  void forget() { chunks_.clear(); }

 private:
  void hear(std::span<const std::byte> datagram);

  std::size_t world_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Chunk> chunks_;  // by operation and element
  std::uint64_t partial_chunks_ = 0;
};

}  // namespace natagg::simulation
