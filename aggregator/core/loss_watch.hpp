// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Finds out which contributions of one session were lost. A rank sends its chunks in order, so what
// has not come when three later ones have is lost, and only the shard sees whose it was: to the
// other ranks, a chunk that one of them lost looks as if it were their own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "aggregator/core/slot.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

/// Chunks that a rank is to send again: bit i of `lacking` stands for first + i, bit 0 is set.
struct Lost {
  std::uint32_t first = 0;
  std::uint64_t lacking = 0;
};

class LossWatch {
 public:
  /// Throws std::bad_alloc.
  LossWatch(std::uint16_t world, std::uint32_t first_sequence)
      : checked_(world, first_sequence), marked_(world, first_sequence - kChunksAMark) {}

  /// `rank` has contributed to chunk `sequence`, of a slot that is open or just finished. Tells of
  /// each lost chunk once.
  [[nodiscard]] std::optional<Lost> contributed(const SlotTable& slots, std::uint16_t rank,
                                                std::uint32_t sequence);

  /// `rank` repeats itself, so it hears nothing: what it was told may be lost. Tells again of the
  /// first lost chunks.
  [[nodiscard]] std::optional<Lost> repeated(const SlotTable& slots, std::uint16_t rank) const;

  /// The chunk of `rank` met congestion. True when the rank should hear of it: once in a few
  /// chunks, as it reacts once a round trip only.
  [[nodiscard]] bool tells_of_congestion(std::uint16_t rank, std::uint32_t sequence);

 private:
  /// Of the marks in so many chunks a rank hears once.
  static constexpr std::uint32_t kChunksAMark = 8;

  std::vector<std::uint32_t> checked_;  // by rank: the chunks before it have come or were told of
  std::vector<std::uint32_t> marked_;   // by rank: the last chunk whose mark was told of
};

}  // namespace natagg::aggregator
