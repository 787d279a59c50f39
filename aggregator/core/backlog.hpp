// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Results that ranks have yet to ask for although their slots are used again: this is how far a
// rank may be behind without the others' waiting for it. When the room for a slot's results is used
// up they do wait, for one straggler deadline, or for half a second where that is more, so that
// nobody is lost because of a lost packet. In that time the rank has to come a window further for
// each straggler deadline, which is the pace that the others are sure of. One that does not is left
// behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/core/peer.hpp"
#include "aggregator/core/slot.hpp"

namespace natagg::aggregator {

class Backlog {
 public:
  /// For `window` slots, a power of two, of up to `values` values from `world` ranks. Throws
  /// std::bad_alloc.
  Backlog(std::uint32_t window, std::uint16_t values, std::uint16_t world, Time deadline);

  [[nodiscard]] bool empty() const { return kept_ == 0; }

  /// Whether one more result of the slot of `sequence` can be kept.
  [[nodiscard]] bool has_room(std::uint32_t sequence) const {
    return queue(sequence).size < proto::kLateWindows;
  }

  /// Keeps the result of `sequence` for the ranks that are not among those who `came` to the chunk
  /// a window later. Some are not, the result of the chunk a window before is kept too or nobody
  /// needs it, and there is room.
  void keep(std::uint32_t sequence, const Result& result, std::span<const std::uint64_t> came);

  /// Nothing when it is not kept. Valid until the next call of a function that changes this.
  [[nodiscard]] std::optional<Result> find(std::uint32_t sequence) const;

  /// `rank` sends the chunk `sequence`, and so has the results up to a window before it.
  void came(std::uint32_t sequence, std::uint16_t rank);

  /// `rank` will not come any more.
  void excuse(std::uint16_t rank);

  /// The chunk `sequence` waits for room. Returns the lowest rank that it waits for.
  std::uint16_t hold(std::uint32_t sequence, Time now);

  /// A rank for which the others have waited long enough.
  [[nodiscard]] std::optional<std::uint16_t> take_late(Time now);

  /// This process was not running for `gap`, which is not the ranks' lateness.
  void forgive(Time gap) { held_since_ += gap; }

 private:
  /// A slot's kept results, of chunks a window apart, oldest first: a ring in entries_.
  struct Queue {
    std::uint32_t oldest = 0;  // sequence
    std::uint8_t head = 0;
    std::uint8_t size = 0;
  };
  struct Entry {
    Chunk chunk;
    std::uint16_t opener = 0;
    std::uint16_t needing = 0;  // ranks that may yet ask for it
    bool specials = false;
    bool partial = false;
  };

  [[nodiscard]] const Queue& queue(std::uint32_t sequence) const {
    return queues_[sequence & (window_ - 1)];
  }
  [[nodiscard]] Queue& queue(std::uint32_t sequence) { return queues_[sequence & (window_ - 1)]; }
  /// Of the `place`-th oldest of the slot's.
  [[nodiscard]] std::size_t index(std::uint32_t slot, unsigned place) const {
    return std::size_t{slot} * proto::kLateWindows +
           (queues_[slot].head + place) % proto::kLateWindows;
  }
  /// Where a kept `sequence` is in its slot's queue.
  [[nodiscard]] std::optional<unsigned> place_of(std::uint32_t sequence) const;
  [[nodiscard]] std::span<std::uint64_t> needing(std::size_t entry) const {
    return {needing_.get() + entry * words_, words_};
  }
  [[nodiscard]] bool needs(std::uint32_t sequence, std::uint16_t rank) const;
  [[nodiscard]] std::uint16_t lowest(std::uint32_t slot) const;
  void release(std::uint32_t slot, unsigned places, std::uint16_t rank);
  void begin_holding(Time now);

  std::uint32_t window_;
  std::size_t stride_;  // bytes of a result, with its set of ranks
  std::size_t set_bytes_;
  std::uint16_t world_;
  std::size_t words_;  // of a bitmap of ranks
  Time patience_;
  std::uint32_t pace_;  // windows in that time
  std::size_t kept_ = 0;
  std::vector<Queue> queues_;  // one a slot
  std::vector<Entry> entries_;
  std::unique_ptr<std::uint64_t[]> needing_;  // a bitmap an entry
  std::unique_ptr<std::uint8_t[]> bytes_;     // touched only where it is used

  bool holding_ = false;
  Time held_since_ = 0;
  std::uint32_t held_ = 0;    // the chunk that waited last
  std::uint32_t target_ = 0;  // who still needs its result when the time is over was too slow
};

}  // namespace natagg::aggregator
