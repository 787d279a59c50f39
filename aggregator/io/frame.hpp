// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Decides what a received frame is. Reads nothing that it has not checked to lie in the frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "aggregator/core/shard.hpp"
#include "aggregator/io/host.hpp"
#include "aggregator/io/io_counters.hpp"

namespace natagg::aggregator::io {

/// What the device has verified already.
struct Verified {
  bool ip_checksum = false;
  bool udp_checksum = false;
};

/// `verdict` is kRxDatagrams, kRxArp (a request to answer), kRxEcho (likewise), or a drop's reason.
/// Offsets count from the frame's first byte and are set as far as `verdict` says.
struct Frame {
  IoCounter verdict = IoCounter::kDropRunt;
  std::uint16_t network = 0;  // offset of the ARP packet or IPv4 header
  std::uint16_t payload = 0;  // offset of the UDP payload
  std::uint16_t length = 0;   // of the UDP payload
  std::uint16_t shard = 0;
  bool congested = false;  // marked on its way (RFC 3168)
  Peer source;
};

[[nodiscard]] Frame parse_frame(std::span<const std::byte> frame, const Host& self,
                                Verified verified = {});

}  // namespace natagg::aggregator::io
