// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Philox on vectors: the 16 blocks of one random group (rounding.hpp) at once. A block's word
// stands in the low half of a 64-bit lane, where the widening multiplication wants it; what is
// left in the high half is never read. Included by each instruction set's kernels.
#pragma once

#include <cstdint>

#include "proto/philox.hpp"
#include "proto/rounding.hpp"

namespace natagg {
namespace {

template <typename Isa>
class PhiloxVector {
 public:
  using Vector = typename Isa::Vector;

  /// Vectors of 32-bit lanes that hold one word of the 16 blocks.
  static constexpr int kSets = 16 / Isa::kLanes;

  /// words[w][s]: word w of blocks s * kLanes and following.
  struct Words {
    Vector words[4][kSets];
  };

  [[gnu::always_inline]] explicit PhiloxVector(const proto::RoundingKey& key)
      : operation_(Isa::broadcast64(key.operation)), who_(Isa::broadcast64(key.who)) {
    auto key0 = static_cast<std::uint32_t>(key.seed);
    auto key1 = static_cast<std::uint32_t>(key.seed >> 32);
    for (int round = 0; round < proto::kPhiloxRounds; ++round) {
      keys_[round][0] = Isa::broadcast64(key0);
      keys_[round][1] = Isa::broadcast64(key1);
      key0 += proto::kPhiloxWeyl0;
      key1 += proto::kPhiloxWeyl1;
    }
  }

  /// The blocks of the group that starts at `element`, a multiple of kRandomGroup.
  [[gnu::always_inline]] Words group(std::uint64_t element) const {
    const std::uint64_t block = element / proto::kRandomGroup * 16;
    Words result;
    for (int set = 0; set < kSets; ++set) {
      State even;
      State odd;
      even.c[0] = Isa::add64(Isa::broadcast64(static_cast<std::uint32_t>(block) +
                                              static_cast<std::uint32_t>(set * Isa::kLanes)),
                             Isa::even_numbers64());
      odd.c[0] = Isa::add64(even.c[0], Isa::broadcast64(1));
      even.c[1] = odd.c[1] = Isa::broadcast64(block >> 32);
      even.c[2] = odd.c[2] = operation_;
      even.c[3] = odd.c[3] = who_;
#pragma GCC unroll 7
      for (int round = 0; round < proto::kPhiloxRounds; ++round) {
        advance(even, round);
        advance(odd, round);
      }
      for (int word = 0; word < 4; ++word) {
        result.words[word][set] = Isa::interleave(even.c[word], odd.c[word]);
      }
    }
    return result;
  }

 private:
  struct State {
    Vector c[4];
  };

  [[gnu::always_inline]] void advance(State& state, int round) const {
    const Vector product0 =
        Isa::multiply64(state.c[0], Isa::broadcast64(proto::kPhiloxMultiplier0));
    const Vector product1 =
        Isa::multiply64(state.c[2], Isa::broadcast64(proto::kPhiloxMultiplier1));
    state.c[0] = Isa::xor3(Isa::template shift_right64<32>(product1), state.c[1], keys_[round][0]);
    state.c[1] = product1;
    state.c[2] = Isa::xor3(Isa::template shift_right64<32>(product0), state.c[3], keys_[round][1]);
    state.c[3] = product0;
  }

  Vector operation_;
  Vector who_;
  Vector keys_[proto::kPhiloxRounds][2];
};

}  // namespace
}  // namespace natagg
