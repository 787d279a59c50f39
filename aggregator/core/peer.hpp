// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Whom a shard talks to, and when.
#pragma once

#include <cstdint>

#include "proto/endpoint.hpp"

namespace natagg::aggregator {

/// Nanoseconds of any monotonic clock.
using Time = std::int64_t;

/// Where a datagram came from, and how to send one back. Two peers are the same when their
/// endpoints are; `link` (source MAC, VLAN tag) and `interface` (number of the network device) are
/// the I/O layer's own, kept and returned unread.
struct Peer {
  proto::Endpoint endpoint;
  std::uint64_t link = 0;
  std::uint16_t interface = 0;
};

}  // namespace natagg::aggregator
