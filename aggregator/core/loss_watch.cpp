// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/loss_watch.hpp"

#include <algorithm>

#include "proto/serial.hpp"

namespace natagg::aggregator {
namespace {

/// Of a chunk that `rank` has sent.
bool is_lacking(const SlotTable& slots, std::uint16_t rank, std::uint32_t sequence) {
  switch (slots.locate(sequence)) {
    case SlotTable::Position::kNext:
    case SlotTable::Position::kHeld: return true;
    case SlotTable::Position::kOpen: return !slots.has_contributed(sequence, rank);
    default: return false;
  }
}

/// The first lost chunks from `begin` up to `end`, which are at most a window apart.
std::optional<Lost> find(const SlotTable& slots, std::uint16_t rank, std::uint32_t begin,
                         std::uint32_t end) {
  while (begin != end && !is_lacking(slots, rank, begin)) ++begin;
  if (begin == end) return std::nullopt;
  Lost lost{.first = begin, .lacking = 1};
  const std::uint32_t count = std::min(end - begin, proto::kNackChunks);
  for (std::uint32_t i = 1; i < count; ++i) {
    if (is_lacking(slots, rank, begin + i)) lost.lacking |= std::uint64_t{1} << i;
  }
  return lost;
}

}  // namespace

std::optional<Lost> LossWatch::contributed(const SlotTable& slots, std::uint16_t rank,
                                           std::uint32_t sequence) {
  const std::uint32_t end = sequence - proto::kReordering + 1;
  std::uint32_t& checked = checked_[rank];
  const std::int32_t ahead = proto::serial_distance(checked, end);
  if (ahead <= 0) return std::nullopt;
  // Older chunks are finished: every rank has got as far as a window before any other.
  if (static_cast<std::uint32_t>(ahead) > slots.window()) checked = end - slots.window();
  const std::optional<Lost> lost = find(slots, rank, checked, end);
  checked = lost ? std::min(lost->first + proto::kNackChunks, end, proto::serial_less) : end;
  return lost;
}

std::optional<Lost> LossWatch::repeated(const SlotTable& slots, std::uint16_t rank) const {
  return find(slots, rank, checked_[rank] - slots.window(), checked_[rank]);
}

bool LossWatch::tells_of_congestion(std::uint16_t rank, std::uint32_t sequence) {
  // Chunks from before it are sent again: what met congestion then is none of theirs.
  const std::int32_t since = proto::serial_distance(marked_[rank], sequence);
  if (since < static_cast<std::int32_t>(kChunksAMark)) return false;
  marked_[rank] = sequence;
  return true;
}

}  // namespace natagg::aggregator
