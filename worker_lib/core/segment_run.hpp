// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Which datagrams UDP segmentation offload takes as one packet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "worker_lib/core/stream.hpp"

namespace natagg::worker {

/// What Linux takes as one packet: bytes of UDP payload, and datagrams (64 before Linux 6.3, and
/// 128 since).
inline constexpr std::size_t kMostSegmentedBytes = 65'535 - 20 - 8;
inline constexpr std::size_t kMostSegments = 64;

/// How many of `datagrams`, of which there is one at least, leave as one packet: all for one
/// destination and of one length but the last, which may be shorter.
[[nodiscard]] inline std::size_t segment_run(std::span<const Outgoing> datagrams) {
  const Outgoing& first = datagrams.front();
  const std::size_t length = first.datagram.size();
  const std::size_t most =
      first.segmentable ? std::min(datagrams.size(), kMostSegments) : std::size_t{1};
  std::size_t bytes = length;
  for (std::size_t count = 1; count < most; ++count) {
    const Outgoing& next = datagrams[count];
    const std::size_t size = next.datagram.size();
    bytes += size;
    if (!next.segmentable || next.to != first.to || size == 0 || size > length ||
        bytes > kMostSegmentedBytes) {
      return count;
    }
    if (size < length) return count + 1;
  }
  return most;
}

}  // namespace natagg::worker
