// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/slot.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "proto/nat8.hpp"
#include "proto/serial.hpp"

namespace natagg::aggregator {
namespace {

/// A sum that can reach this does not fit int64.
constexpr std::uint64_t kUnbounded = std::uint64_t{1} << 63;

/// NaN wins, Inf + -Inf = NaN, Inf wins over finite (0). Arguments are specials or 0.
std::uint8_t add_specials(std::uint8_t a, std::uint8_t b) {
  if (a == 0 || a == b) return b;
  if (b == 0) return a;
  return nat8::kNan;
}

}  // namespace

template <typename T>
SlotTable::AlignedArray<T> SlotTable::allocate(std::size_t n) {
  // Not cleared: the first contribution stores, so pages are touched only when they are used.
  return AlignedArray<T>(static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})));
}

SlotTable::SlotTable(std::uint16_t window, std::uint16_t values, std::uint16_t world,
                     std::uint32_t first_sequence, const proto::RoundingKey& key,
                     const Kernels& kernels, bool partial)
    : mask_(window - 1U),
      stride_(values),
      result_stride_(values + (partial ? proto::kMaxRankSetBytes : 0)),
      world_(world),
      bitmap_words_((world + 63U) / 64),
      key_(key),
      kernels_(&kernels),
      slots_(window),
      contributed_(window * bitmap_words_),
      free_(window),
      sums_(allocate<std::int64_t>(window * stride_)),
      carries_(allocate<std::int16_t>(window * stride_)),
      specials_(allocate<std::uint8_t>(window * stride_)),
      results_(allocate<std::uint8_t>(2 * window * result_stride_)) {
  for (std::uint32_t i = 0; i < window; ++i) {
    const std::uint32_t sequence = first_sequence + i;
    slot(sequence).sequence = sequence - window;
    slot(sequence).contributions = world;
  }
  std::iota(free_.rbegin(), free_.rend(), std::uint16_t{0});
  excused_.reserve(bitmap_words_);
}

SlotTable::Position SlotTable::locate(std::uint32_t sequence) const {
  const Slot& s = slot(sequence);
  const std::int64_t distance = proto::serial_distance(s.sequence, sequence);
  const auto window = static_cast<std::int64_t>(mask_) + 1;
  if (distance == 0 && s.open) return Position::kOpen;
  if (distance == window && !s.open) {
    return s.contributions == world_ ? Position::kNext : Position::kHeld;
  }
  if (distance > 0) return Position::kEarly;
  const unsigned version = distance == 0 ? s.version : s.version ^ 1U;
  if (distance < -window || !s.cached[version].valid) return Position::kStale;
  return Position::kFinished;
}

void SlotTable::open(std::uint32_t sequence, const Chunk& chunk, std::uint16_t opener) {
  Slot& s = slot(sequence);
  s.sequence = sequence;
  s.contributions = 0;
  s.opener = opener;
  s.accumulator = free_.back();
  free_.pop_back();
  s.version ^= 1;
  s.open = true;
  s.wide = false;
  s.specials = false;
  s.bound = 0;
  s.chunk = chunk;
  s.cached[s.version].valid = false;
  std::fill_n(
      contributed_.begin() + static_cast<std::ptrdiff_t>((sequence & mask_) * bitmap_words_),
      bitmap_words_, 0);
}

bool SlotTable::has_contributed(std::uint32_t sequence, std::uint16_t rank) const {
  const std::uint64_t word = contributed_[(sequence & mask_) * bitmap_words_ + rank / 64U];
  return (word >> (rank % 64) & 1) != 0;
}

proto::PendingBody SlotTable::pending(std::uint32_t sequence) const {
  const std::uint64_t* words = &contributed_[(sequence & mask_) * bitmap_words_];
  std::size_t word = 0;
  while (word + 1 < bitmap_words_ && words[word] == ~std::uint64_t{0}) ++word;
  const auto missing = word * 64 + static_cast<std::size_t>(std::countr_one(words[word]));
  return {.missing = proto::Be16{static_cast<std::uint16_t>(missing)},
          .missing_count =
              proto::Be16{static_cast<std::uint16_t>(world_ - slot(sequence).contributions)}};
}

bool SlotTable::contribute(std::uint32_t sequence, std::uint16_t rank,
                           std::span<const std::uint8_t> bytes, const Scan& scan,
                           nat8::Tally& tally) {
  Slot& s = slot(sequence);
  std::int64_t* const sums = this->sums(s);
  std::int16_t* const carry = carries(s);
  s.bound = std::min(s.bound + (std::uint64_t{1} << scan.largest_code), kUnbounded);
  if (s.contributions == 0) {
    kernels_->store(bytes.data(), sums, bytes.size());
  } else {
    if (!s.wide && s.bound == kUnbounded) widen(s, sums, carry);
    if (s.wide) {
      kernels_->accumulate_wide(bytes.data(), sums, carry, bytes.size());
    } else {
      kernels_->accumulate(bytes.data(), sums, bytes.size());
    }
  }
  if (scan.any_special) merge_specials(s, specials(s), bytes);
  arrive(sequence, rank);
  if (s.contributions < world_) return false;
  finish(sequence, tally);
  close(s, false, s.specials);
  return true;
}

void SlotTable::arrive(std::uint32_t sequence, std::uint16_t rank) {
  contributed_[(sequence & mask_) * bitmap_words_ + rank / 64U] |= std::uint64_t{1} << (rank % 64);
  ++slot(sequence).contributions;
}

void SlotTable::excuse(std::uint16_t rank) {
  excused_.resize(bitmap_words_);
  excused_[rank / 64U] |= std::uint64_t{1} << (rank % 64);
  for (const Slot& s : slots_) {
    if (awaits(s.sequence, rank) && !s.open) arrive(s.sequence, rank);
  }
}

/// Counts as come to a finished chunk those who will not come.
void SlotTable::excuse_from(std::uint32_t sequence) {
  std::uint64_t* words = &contributed_[(sequence & mask_) * bitmap_words_];
  for (std::size_t i = 0; i < excused_.size(); ++i) {
    const std::uint64_t missing = excused_[i] & ~words[i];
    words[i] |= missing;
    Slot& s = slot(sequence);
    s.contributions = static_cast<std::uint16_t>(s.contributions + std::popcount(missing));
  }
}

bool SlotTable::lacks_only_excused(std::uint32_t sequence) const {
  std::size_t there = 0;
  for (std::size_t i = 0; i < excused_.size(); ++i) {
    there += static_cast<std::size_t>(std::popcount(came(sequence)[i] | excused_[i]));
  }
  return there == world_;
}

void SlotTable::finish_partially(std::uint32_t sequence, nat8::Tally& tally) {
  Slot& s = slot(sequence);
  finish(sequence, tally);
  const std::uint64_t* words = &contributed_[(sequence & mask_) * bitmap_words_];
  std::uint8_t* ranks = cached_bytes(sequence, s.version) + s.chunk.count;
  for (std::size_t i = 0; i < proto::rank_set_bytes(world_); ++i) {
    ranks[i] = static_cast<std::uint8_t>(words[i / 8] >> (i % 8 * 8));
  }
  close(s, true, s.specials);
  excuse_from(sequence);
}

void SlotTable::adopt(std::uint32_t sequence, std::uint16_t rank,
                      std::span<const std::uint8_t> values, std::span<const std::uint8_t> ranks,
                      bool specials) {
  Slot& s = slot(sequence);
  std::uint8_t* bytes = cached_bytes(sequence, s.version);
  std::copy(values.begin(), values.end(), bytes);
  std::copy(ranks.begin(), ranks.end(), bytes + values.size());
  arrive(sequence, rank);
  close(s, true, specials);
  excuse_from(sequence);
}

void SlotTable::close(Slot& s, bool partial, bool specials) {
  s.cached[s.version] = {.chunk = s.chunk,
                         .opener = s.opener,
                         .valid = true,
                         .specials = specials,
                         .partial = partial};
  s.open = false;
  free_.push_back(s.accumulator);
}

void SlotTable::widen(Slot& s, const std::int64_t* sums, std::int16_t* carry) {
  for (std::size_t i = 0; i < s.chunk.count; ++i) {
    carry[i] = static_cast<std::int16_t>(sums[i] < 0 ? -1 : 0);
  }
  s.wide = true;
}

void SlotTable::merge_specials(Slot& s, std::uint8_t* map, std::span<const std::uint8_t> bytes) {
  if (!s.specials) std::memset(map, 0, bytes.size());
  s.specials = true;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (nat8::is_special(bytes[i])) map[i] = add_specials(map[i], bytes[i]);
  }
}

void SlotTable::finish(std::uint32_t sequence, nat8::Tally& tally) {
  Slot& s = slot(sequence);
  const std::size_t count = s.chunk.count;
  std::int64_t* const sums = this->sums(s);
  const std::uint8_t* const specials = this->specials(s);
  if (s.wide) {
    // Anything beyond 63 bits clips to the largest code, so only its sign is still needed.
    constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    const std::int16_t* const carry = carries(s);
    for (std::size_t i = 0; i < count; ++i) {
      const bool fits = carry[i] == (sums[i] < 0 ? -1 : 0) && sums[i] >= -largest;
      if (!fits) sums[i] = carry[i] < 0 ? -largest : largest;
    }
  }
  if (s.specials) {
    for (std::size_t i = 0; i < count; ++i) {
      if (specials[i] != 0) sums[i] = 0;
    }
  }
  proto::RoundingKey key = key_;
  key.operation = s.chunk.operation;
  std::uint8_t* bytes = cached_bytes(sequence, s.version);
  kernels_->recompress(sums, bytes, count, s.chunk.element, key, tally);
  if (s.specials) {
    for (std::size_t i = 0; i < count; ++i) {
      if (specials[i] == 0) continue;
      bytes[i] = specials[i];
      --tally.zeros;
      ++(specials[i] == nat8::kNan ? tally.nans : tally.infs);
    }
  }
}

Result SlotTable::result(std::uint32_t sequence) const {
  const Slot& s = slot(sequence);
  const unsigned version = s.sequence == sequence ? s.version : s.version ^ 1U;
  const Cached& cached = s.cached[version];
  const std::size_t ranks = cached.partial ? proto::rank_set_bytes(world_) : 0;
  return {.chunk = cached.chunk,
          .bytes = {cached_bytes(sequence, version), cached.chunk.count + ranks},
          .opener = cached.opener,
          .specials = cached.specials,
          .partial = cached.partial};
}

}  // namespace natagg::aggregator
