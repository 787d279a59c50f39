// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Frames as a worker makes and reads them where no kernel does: Ethernet, ARP, IPv4 and UDP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "proto/endpoint.hpp"
#include "proto/net/headers.hpp"

namespace natagg::worker {

/// Who the worker is on the link.
struct Station {
  net::MacAddress mac;
  proto::Endpoint endpoint;
};

/// In front of a datagram: Ethernet without a tag, IPv4 without options, UDP without a checksum.
inline constexpr std::size_t kFrameHeaders =
    sizeof(net::EthernetHeader) + sizeof(net::Ipv4Header) + sizeof(net::UdpHeader);
inline constexpr std::size_t kArpFrame = sizeof(net::EthernetHeader) + sizeof(net::ArpPacket);

/// Writes kFrameHeaders bytes before a datagram of `length`.
void write_frame_headers(std::span<std::byte> out, const Station& self, const net::MacAddress& mac,
                         const proto::Endpoint& to, std::size_t length);

/// Writes a broadcast of kArpFrame bytes that asks who has `address`.
void write_arp_request(std::span<std::byte> out, const Station& self, std::uint32_t address);

/// A UDP payload for this station.
struct Datagram {
  std::span<const std::byte> bytes;
  proto::Endpoint source;
};
/// An ARP packet of any kind says where an address is.
struct Neighbour {
  std::uint32_t address = 0;
  net::MacAddress mac;
};
/// Nothing: not for this station, or not what it understands.
using Received = std::variant<std::monostate, Datagram, Neighbour>;

/// Reads nothing that it has not checked to lie in the frame.
[[nodiscard]] Received read_frame(std::span<const std::byte> frame, const Station& self);

}  // namespace natagg::worker
