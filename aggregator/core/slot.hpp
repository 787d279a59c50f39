// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The slots of one session on one shard. A slot's life:
//
//   finished s-W --first DATA of s--> open s --DATA of every other rank--> finished s --> ...
//
// where W is the window. A rank sends chunk s only after it has the result of s-W, so when the
// first DATA of s arrives every rank has contributed to s-W, and when the first DATA of s+W
// arrives every rank has the result of s-W. Two cached results a slot are therefore enough to
// answer every retransmission that a correct rank can make.
//
// Sums are in use while a chunk is open. A free list of them, last in, first out, keeps those in
// use few and in the cache, however large the window is.
//
// A chunk may also be finished with some ranks' contributions alone. s+W then has to wait until the
// others have come to s as well, by sending it or s+W, which says that they have the result of s-W.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "proto/kernels.hpp"
#include "proto/packet.hpp"
#include "proto/rounding.hpp"

namespace natagg::aggregator {

/// What all ranks must agree on for one chunk.
struct Chunk {
  std::uint64_t element = 0;
  std::uint64_t fingerprint = 0;
  std::uint32_t operation = 0;
  std::uint16_t count = 0;

  bool operator==(const Chunk&) const = default;
};

/// A finished chunk: its recompressed sum and what its packet's header says.
struct Result {
  Chunk chunk;
  std::span<const std::uint8_t> bytes;  // the set of ranks follows the values of a partial one
  std::uint16_t opener = 0;             // the first rank that contributed
  bool specials = false;
  bool partial = false;
};

class SlotTable {
 public:
  /// Where a sequence number stands in its slot's life.
  enum class Position : std::uint8_t {
    kNext,      // opens the slot
    kOpen,      // belongs to the open chunk
    kFinished,  // its result is cached
    kStale,     // finished so long ago that every rank has its result
    kEarly,     // may not be sent yet: the chunk before it is open
    kHeld,      // opens the slot when all ranks have come to the finished chunk before it
  };

  /// `window` slots, a power of two, of up to `values` values from `world` ranks. The rounding
  /// key's operation is filled in a chunk at a time. Throws std::bad_alloc. Results may be partial
  /// when `world` is at most proto::kMaxPartialWorld and `partial` is set.
  SlotTable(std::uint16_t window, std::uint16_t values, std::uint16_t world,
            std::uint32_t first_sequence, const proto::RoundingKey& key, const Kernels& kernels,
            bool partial = false);

  [[nodiscard]] Position locate(std::uint32_t sequence) const;

  /// Opens the slot of `sequence`, which locate() found to be kNext.
  void open(std::uint32_t sequence, const Chunk& chunk, std::uint16_t opener);

  // The rest concerns the slot of `sequence`, which locate() found to be kOpen ...
  [[nodiscard]] bool has_contributed(std::uint32_t sequence, std::uint16_t rank) const;
  [[nodiscard]] const Chunk& chunk(std::uint32_t sequence) const { return slot(sequence).chunk; }
  [[nodiscard]] std::uint16_t opener(std::uint32_t sequence) const { return slot(sequence).opener; }
  [[nodiscard]] proto::PendingBody pending(std::uint32_t sequence) const;

  /// Adds the contribution of `rank`, which has not contributed yet. True when it was the last:
  /// the slot is then finished and its result cached.
  bool contribute(std::uint32_t sequence, std::uint16_t rank, std::span<const std::uint8_t> bytes,
                  const Scan& scan, nat8::Tally& tally);

  /// Finishes the slot with the ranks that have contributed.
  void finish_partially(std::uint32_t sequence, nat8::Tally& tally);

  /// Finishes the slot with what `rank` knows to be the result: values and set of ranks.
  void adopt(std::uint32_t sequence, std::uint16_t rank, std::span<const std::uint8_t> values,
             std::span<const std::uint8_t> ranks, bool specials);

  [[nodiscard]] bool is_wide(std::uint32_t sequence) const { return slot(sequence).wide; }
  [[nodiscard]] std::uint16_t contributions(std::uint32_t sequence) const {
    return slot(sequence).contributions;
  }

  // ... or kFinished. Valid until the slot is opened again twice.
  [[nodiscard]] Result result(std::uint32_t sequence) const;

  /// Ranks that have come to the chunk, 64 a word. Those who will not count as having come once it
  /// is finished.
  [[nodiscard]] std::span<const std::uint64_t> came(std::uint32_t sequence) const {
    return {&contributed_[(sequence & mask_) * bitmap_words_], bitmap_words_};
  }

  /// `rank` will come to no chunk any more that it has not come to.
  void excuse(std::uint16_t rank);

  /// All have contributed but such as will not come.
  [[nodiscard]] bool lacks_only_excused(std::uint32_t sequence) const;

  /// `rank` has not come to the chunk, which was finished without it.
  [[nodiscard]] bool awaits(std::uint32_t sequence, std::uint16_t rank) const {
    const Slot& s = slot(sequence);
    return s.contributions < world_ && s.sequence == sequence && !has_contributed(sequence, rank);
  }
  /// It has now.
  void arrive(std::uint32_t sequence, std::uint16_t rank);

  /// True when a chunk is open to which `rank` has not contributed, and of which
  /// `is_so(sequence, chunk)`.
  template <typename Predicate>
  [[nodiscard]] bool any_open_without(std::uint16_t rank, Predicate&& is_so) const {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& s) {
      return s.open && !has_contributed(s.sequence, rank) && is_so(s.sequence, s.chunk);
    });
  }

  [[nodiscard]] std::size_t open_slots() const { return slots_.size() - free_.size(); }
  [[nodiscard]] std::uint32_t window() const { return mask_ + 1; }

 private:
  struct Cached {
    Chunk chunk;
    std::uint16_t opener = 0;
    bool valid = false;
    bool specials = false;
    bool partial = false;
  };

  struct Slot {
    std::uint32_t sequence = 0;       // of the open chunk, else of the last finished one
    std::uint16_t contributions = 0;  // ranks that have come to it, if too late to be added
    std::uint16_t opener = 0;
    std::uint16_t accumulator = 0;  // of the open chunk
    std::uint8_t version = 0;       // which cached result the open or last chunk writes
    bool open = false;
    bool wide = false;        // sums are 80 bits: carry holds the upper 16
    bool specials = false;    // the special map is in use
    std::uint64_t bound = 0;  // no sum's magnitude can exceed it; saturates at 2^63
    Chunk chunk;
    Cached cached[2];
  };

  struct AlignedDelete {
    void operator()(void* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  template <typename T>
  using AlignedArray = std::unique_ptr<T[], AlignedDelete>;
  template <typename T>
  static AlignedArray<T> allocate(std::size_t n);

  [[nodiscard]] Slot& slot(std::uint32_t sequence) { return slots_[sequence & mask_]; }
  [[nodiscard]] const Slot& slot(std::uint32_t sequence) const { return slots_[sequence & mask_]; }
  [[nodiscard]] std::int64_t* sums(const Slot& s) const {
    return sums_.get() + s.accumulator * stride_;
  }
  [[nodiscard]] std::int16_t* carries(const Slot& s) const {
    return carries_.get() + s.accumulator * stride_;
  }
  [[nodiscard]] std::uint8_t* specials(const Slot& s) const {
    return specials_.get() + s.accumulator * stride_;
  }
  [[nodiscard]] std::uint8_t* cached_bytes(std::uint32_t sequence, unsigned version) const {
    return results_.get() + (2 * std::size_t{sequence & mask_} + version) * result_stride_;
  }
  static void widen(Slot& slot, const std::int64_t* sums, std::int16_t* carry);
  static void merge_specials(Slot& slot, std::uint8_t* map, std::span<const std::uint8_t> bytes);
  void finish(std::uint32_t sequence, nat8::Tally& tally);
  void close(Slot& slot, bool partial, bool specials);
  void excuse_from(std::uint32_t sequence);

  std::uint32_t mask_;
  std::size_t stride_;         // values
  std::size_t result_stride_;  // values, and the set of ranks where results may be partial
  std::uint16_t world_;
  std::size_t bitmap_words_;
  proto::RoundingKey key_;
  const Kernels* kernels_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> excused_;      // bitmap of ranks; empty when it is none
  std::vector<std::uint64_t> contributed_;  // bitmap_words_ a slot
  std::vector<std::uint16_t> free_;         // accumulators, the one that was in use last at the end
  AlignedArray<std::int64_t> sums_;         // stride_ an accumulator, as are the next two
  AlignedArray<std::int16_t> carries_;
  AlignedArray<std::uint8_t> specials_;  // a special byte, or 0 for a finite sum
  AlignedArray<std::uint8_t> results_;   // two versions a slot
};

}  // namespace natagg::aggregator
