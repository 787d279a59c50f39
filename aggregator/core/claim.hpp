// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a JOIN says of an earlier session of the same ranks, which is lost with the aggregator that
// had it. Ranks that claim the same session resume it: the new one begins at the first chunk that
// any of them lacks, and all send again from there what they had sent before.
#pragma once

#include <cstdint>

namespace natagg::aggregator {

struct Claim {
  std::uint64_t members = 0;  // digest of the ranks of the session that is lost; 0: a new job
  std::uint32_t resume = 0;   // sequence of the first chunk of which the rank has no result
  std::uint32_t held = 0;     // chunks from there to the last of which it has the result
  std::uint16_t moves = 0;    // of this place of the pool, from one aggregator to another
  bool untouched = true;      // the rank has no result at all of this place's chunks

  /// Whether ranks with these claims can share a session. A rank of a new job has sent nothing yet,
  /// so it may meet the others again only where none of them has a result.
  [[nodiscard]] constexpr bool fits(const Claim& other) const {
    if (members != 0 && other.members != 0) return members == other.members;
    return untouched && other.untouched;
  }
};

}  // namespace natagg::aggregator
