// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The upper 16 random bits (rounding.hpp) of consecutive rows on vectors, in 32-bit lanes and
// already where the rounding adds them. Included by each instruction set's kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/philox.hpp"
#include "proto/rounding.hpp"

namespace natagg {
namespace {

/// As many consecutive rows as are drawn; the numbers stand at bit kPosition of their lanes. For a
/// local variable whose address never leaves its function: then it lives in registers.
template <typename Isa, int kPosition>
class RandomRows {
 public:
  using Vector = typename Isa::Vector;
  static constexpr int kPerRow = static_cast<int>(proto::kRandomRow) / Isa::kLanes;
  static constexpr int kVectors = static_cast<int>(proto::kDrawnRows) * kPerRow;
  static constexpr std::uint64_t kElements = proto::kDrawnRows * proto::kRandomRow;

  /// Those of `element`, a multiple of kElements, and following.
  [[gnu::always_inline]] RandomRows(const proto::RoundingKey& key, std::uint64_t element) {
    draw(key, element);
    for (int s = 0; s < kPerRow; ++s) first_[s] = vectors_[s];
    for (std::uint64_t i = element % proto::kRandomGroup; i != 0; i -= kElements) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; v += kPerRow) follow(v);
    }
  }

  /// Vector i, 0 to kVectors - 1.
  [[gnu::always_inline]] Vector operator[](int i) const {
    return vectors_[i];
  }

  /// Replaces the row that begins at vector i by the one kVectors later; rows in order.
  [[gnu::always_inline]] void follow(int i) {
    for (int s = 0; s < kPerRow; ++s) {
      vectors_[i + s] = Isa::xor3(vectors_[(i + s + 2 * kPerRow) % kVectors],
                                  vectors_[(i + s + kPerRow) % kVectors], first_[s]);
    }
  }

 private:
  /// Philox on as many blocks as there are 64-bit lanes. A block's word stands in the low half of
  /// a lane, where the widening multiplication wants it; what is in the high half is never read.
  struct Blocks {
    Vector c[4];
  };

  [[gnu::always_inline]] static void advance(Blocks& blocks, std::uint32_t key0,
                                             std::uint32_t key1) {
    const Vector product0 =
        Isa::multiply64(blocks.c[0], Isa::broadcast64(proto::kPhiloxMultiplier0));
    const Vector product1 =
        Isa::multiply64(blocks.c[2], Isa::broadcast64(proto::kPhiloxMultiplier1));
    blocks.c[0] =
        Isa::xor3(Isa::template shift_right64<32>(product1), blocks.c[1], Isa::broadcast64(key0));
    blocks.c[1] = product1;
    blocks.c[2] =
        Isa::xor3(Isa::template shift_right64<32>(product0), blocks.c[3], Isa::broadcast64(key1));
    blocks.c[3] = product0;
  }

  /// The drawn rows of the group that holds `element`.
  [[gnu::always_inline]] void draw(const proto::RoundingKey& rounding, std::uint64_t element) {
    constexpr int kBlocks = Isa::kLanes / 2;
    constexpr int kSets = static_cast<int>(proto::kGroupBlocks) / kBlocks;
    const proto::PhiloxCounter first = proto::coarse_counter(rounding, element, 0);
    Blocks sets[kSets];
    for (int set = 0; set < kSets; ++set) {
      // No carry: a group's first block is a multiple of 16.
      sets[set].c[0] =
          Isa::add64(Isa::broadcast64(first[0] + static_cast<std::uint32_t>(set * kBlocks)),
                     Isa::block_offsets64());
      for (int word = 1; word < 4; ++word) sets[set].c[word] = Isa::broadcast64(first[word]);
    }
    proto::PhiloxKey key = rounding.philox_key();
#pragma GCC unroll 7
    for (int round = 0; round < proto::kPhiloxRounds; ++round) {
#pragma GCC unroll 4
      for (int set = 0; set < kSets; ++set) advance(sets[set], key[0], key[1]);
      key[0] += proto::kPhiloxWeyl0;
      key[1] += proto::kPhiloxWeyl1;
    }
#pragma GCC unroll 4
    for (int set = 0; set < kSets; ++set) {
      const Vector words01 = Isa::interleave(sets[set].c[0], sets[set].c[1]);
      const Vector words23 = Isa::interleave(sets[set].c[2], sets[set].c[3]);
      const Vector low = Isa::low_pairs64(words01, words23);
      const Vector high = Isa::high_pairs64(words01, words23);
      vectors_[4 * set] = Isa::template shift_left32<kPosition>(Isa::widen_low16(low));
      vectors_[4 * set + 1] = Isa::template shift_left32<kPosition>(Isa::widen_high16(low));
      vectors_[4 * set + 2] = Isa::template shift_left32<kPosition>(Isa::widen_low16(high));
      vectors_[4 * set + 3] = Isa::template shift_left32<kPosition>(Isa::widen_high16(high));
    }
  }

  Vector vectors_[kVectors];
  Vector first_[kPerRow];  // row 0 of the group
};

}  // namespace
}  // namespace natagg
