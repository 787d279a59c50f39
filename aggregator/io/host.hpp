// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Who the daemon is on the network, and how it keeps the way back to a peer. The source MAC and
// VLAN tag of a datagram travel in Peer::link, so there is no neighbour table to age or to poison
// and no ARP request ever delays a result.
#pragma once

#include <cstdint>

#include "proto/net/headers.hpp"

namespace natagg::aggregator::io {

using namespace net;  // its words are the vocabulary here

struct Host {
  MacAddress mac;
  std::uint32_t address = 0;
  std::uint16_t first_port = 0;  // shard i listens on first_port + i
  std::uint16_t ports = 1;
  std::uint16_t interface = 0;  // of the daemon's network devices, the one with that MAC address
  /// Devices of this machine's own kernel hand over datagrams whose UDP checksum field still
  /// holds the pseudo header's sum (CHECKSUM_PARTIAL): the bytes never crossed a wire.
  bool accepts_partial_checksums = false;
};

struct Link {
  MacAddress mac;
  std::uint16_t tci = 0;  // 0: no tag. A tag of all zeros means the same to a switch.

  constexpr bool operator==(const Link&) const = default;
};

[[nodiscard]] constexpr std::uint64_t pack(const Link& link) {
  std::uint64_t packed = link.tci;
  for (std::uint8_t byte : link.mac.bytes) packed = packed << 8 | byte;
  return packed;
}

[[nodiscard]] constexpr Link unpack_link(std::uint64_t packed) {
  Link link{.mac = {}, .tci = static_cast<std::uint16_t>(packed >> 48)};
  for (unsigned i = 0; i < 6; ++i) {
    link.mac.bytes[i] = static_cast<std::uint8_t>(packed >> (8 * (5 - i)));
  }
  return link;
}

[[nodiscard]] constexpr bool is_multicast(std::uint32_t address) {
  return address >> 28 == 0xE;
}

/// A host that can be answered: not "this network", loopback, multicast, reserved or broadcast.
[[nodiscard]] constexpr bool is_unicast(std::uint32_t address) {
  return address >> 24 != 0 && address >> 24 != 127 && address >> 28 < 0xE;
}

}  // namespace natagg::aggregator::io
