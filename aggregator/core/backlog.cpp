// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/backlog.hpp"

#include <algorithm>
#include <bit>

#include "proto/serial.hpp"

namespace natagg::aggregator {

Backlog::Backlog(std::uint32_t window, std::uint16_t values, std::uint16_t world, Time deadline)
    : window_(window),
      stride_(values + proto::rank_set_bytes(world)),
      set_bytes_(proto::rank_set_bytes(world)),
      world_(world),
      words_((world + 63U) / 64),
      patience_(std::max(deadline, Time{proto::kLatePatience_ns})),
      pace_(static_cast<std::uint32_t>(std::min<Time>(patience_ / deadline, proto::kLateWindows))),
      queues_(window),
      entries_(window * proto::kLateWindows),
      needing_(std::make_unique_for_overwrite<std::uint64_t[]>(entries_.size() * words_)),
      bytes_(std::make_unique_for_overwrite<std::uint8_t[]>(entries_.size() * stride_)) {}

void Backlog::keep(std::uint32_t sequence, const Result& result,
                   std::span<const std::uint64_t> came) {
  const std::uint32_t slot = sequence & (window_ - 1);
  Queue& queue = queues_[slot];
  if (queue.size == 0) queue.oldest = sequence;
  const std::size_t entry = index(slot, queue.size++);
  ++kept_;
  std::copy(result.bytes.begin(), result.bytes.end(), bytes_.get() + entry * stride_);
  std::uint16_t needing_ranks = world_;
  for (std::size_t i = 0; i < words_; ++i) {
    const std::size_t ranks = std::min<std::size_t>(64, world_ - i * 64);
    needing(entry)[i] = ~came[i] & (~std::uint64_t{0} >> (64 - ranks));
    needing_ranks = static_cast<std::uint16_t>(needing_ranks - std::popcount(came[i]));
  }
  entries_[entry] = {.chunk = result.chunk,
                     .opener = result.opener,
                     .needing = needing_ranks,
                     .specials = result.specials,
                     .partial = result.partial};
}

std::optional<unsigned> Backlog::place_of(std::uint32_t sequence) const {
  const Queue& q = queue(sequence);
  const std::uint32_t distance = (sequence - q.oldest) / window_;
  return distance < q.size ? std::optional(distance) : std::nullopt;
}

std::optional<Result> Backlog::find(std::uint32_t sequence) const {
  const auto place = place_of(sequence);
  if (!place) return std::nullopt;
  const std::size_t i = index(sequence & (window_ - 1), *place);
  const Entry& entry = entries_[i];
  const std::size_t ranks = entry.partial ? set_bytes_ : 0;
  return Result{.chunk = entry.chunk,
                .bytes = {bytes_.get() + i * stride_, entry.chunk.count + ranks},
                .opener = entry.opener,
                .specials = entry.specials,
                .partial = entry.partial};
}

void Backlog::came(std::uint32_t sequence, std::uint16_t rank) {
  const Queue& q = queue(sequence);
  if (q.size == 0 || !proto::serial_less(q.oldest, sequence)) return;
  // One that came to the chunk after it needs a result no more.
  const std::uint32_t places = (sequence - q.oldest) / window_;
  release(sequence & (window_ - 1), std::min<std::uint32_t>(places, q.size), rank);
}

void Backlog::excuse(std::uint16_t rank) {
  for (std::uint32_t slot = 0; slot < window_; ++slot) release(slot, queues_[slot].size, rank);
}

/// `rank` needs none of the oldest `places` results of the slot any more.
void Backlog::release(std::uint32_t slot, unsigned places, std::uint16_t rank) {
  Queue& queue = queues_[slot];
  const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
  for (unsigned place = 0; place < places; ++place) {
    const std::size_t entry = index(slot, place);
    std::uint64_t& word = needing(entry)[rank / 64];
    if ((word & bit) != 0) --entries_[entry].needing;
    word &= ~bit;
  }
  // Whoever needs a result needs those after it, so the oldest is needed least.
  while (queue.size != 0 && entries_[index(slot, 0)].needing == 0) {
    queue.head = static_cast<std::uint8_t>((queue.head + 1) % proto::kLateWindows);
    queue.oldest += window_;
    --queue.size;
    --kept_;
  }
}

bool Backlog::needs(std::uint32_t sequence, std::uint16_t rank) const {
  const auto place = place_of(sequence);
  if (!place) return false;
  return (needing(index(sequence & (window_ - 1), *place))[rank / 64] >> (rank % 64) & 1) != 0;
}

/// Rank that needs the slot's oldest result.
std::uint16_t Backlog::lowest(std::uint32_t slot) const {
  const std::span<const std::uint64_t> words = needing(index(slot, 0));
  std::size_t word = 0;
  while (word + 1 < words_ && words[word] == 0) ++word;
  return static_cast<std::uint16_t>(word * 64 +
                                    static_cast<std::size_t>(std::countr_zero(words[word])));
}

std::uint16_t Backlog::hold(std::uint32_t sequence, Time now) {
  held_ = sequence;
  if (!holding_) begin_holding(now);
  return lowest(sequence & (window_ - 1));
}

std::optional<std::uint16_t> Backlog::take_late(Time now) {
  if (!holding_ || now - held_since_ < patience_) return std::nullopt;
  holding_ = !has_room(held_);
  if (!holding_) return std::nullopt;
  const std::uint32_t slot = held_ & (window_ - 1);
  for (std::uint16_t rank = 0; rank < world_; ++rank) {
    if (needs(queues_[slot].oldest, rank) && needs(target_, rank)) return rank;
  }
  begin_holding(now);
  return std::nullopt;
}

void Backlog::begin_holding(Time now) {
  holding_ = true;
  held_since_ = now;
  // Who has come a window further needs the oldest no more.
  target_ = queue(held_).oldest + (pace_ - 1) * window_;
}

}  // namespace natagg::aggregator
