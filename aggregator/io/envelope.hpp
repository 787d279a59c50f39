// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The Ethernet, IPv4 and UDP headers around a datagram that the daemon sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "aggregator/core/shard.hpp"
#include "aggregator/io/host.hpp"

namespace natagg::aggregator::io {

/// Who fills a checksum in. The device wants the UDP field to hold the pseudo header's sum.
struct Offload {
  bool ip_checksum = false;
  bool udp_checksum = false;
  bool no_udp_checksum = false;  // nobody: the frame never leaves this machine's memory
};

struct Payload {
  std::uint16_t length = 0;
  std::uint16_t sum = 0;  // ones_sum() of the bytes; unused when the device fills it in, or nobody
};

struct Envelope {
  static constexpr std::size_t kMaxBytes =
      sizeof(EthernetHeader) + sizeof(VlanTag) + sizeof(Ipv4Header) + sizeof(UdpHeader);

  std::array<std::byte, kMaxBytes> bytes;
  std::uint16_t link_length = 0;  // Ethernet, and the tag when the peer has one
  std::uint16_t length = 0;
};

/// A multicast destination gets the group's MAC address and TTL 1.
[[nodiscard]] Envelope make_envelope(const Host& self, std::uint16_t source_port, const Peer& to,
                                     Payload payload, Offload offload);

}  // namespace natagg::aggregator::io
