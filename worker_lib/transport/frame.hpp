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
#include "worker_lib/transport/station.hpp"

namespace natagg::worker {

/// In front of a datagram: Ethernet without a tag, IPv4 without options, UDP.
inline constexpr std::size_t kFrameHeaders =
    sizeof(net::EthernetHeader) + sizeof(net::Ipv4Header) + sizeof(net::UdpHeader);
inline constexpr std::size_t kArpFrame = sizeof(net::EthernetHeader) + sizeof(net::ArpPacket);

/// Writes kFrameHeaders bytes before a datagram of `length`, without a checksum of UDP.
void write_frame_headers(std::span<std::byte> out, const Station& self, const net::MacAddress& mac,
                         const proto::Endpoint& to, std::size_t length);

/// Adds the checksum to a whole frame of ours.
void write_udp_checksum(std::span<std::byte> frame);

/// Adds the part of it that a device wants to be given when it adds the rest.
void write_pseudo_checksum(std::span<std::byte> frame);

/// Writes a broadcast of kArpFrame bytes that asks who has `address`.
void write_arp_request(std::span<std::byte> out, const Station& self, std::uint32_t address);

/// A UDP payload for this station or a group of its.
struct Datagram {
  std::span<const std::byte> bytes;
  proto::Endpoint source;
  bool congested = false;  // marked on its way (RFC 3168)
};
/// An ARP packet of any kind says where an address is.
struct Neighbour {
  std::uint32_t address = 0;
  net::MacAddress mac;
  bool asks = false;  // where this station is
};
/// Nothing: not for this station, or not what it understands.
using Received = std::variant<std::monostate, Datagram, Neighbour>;

/// Writes kArpFrame bytes that tell who asked where this station is.
void write_arp_reply(std::span<std::byte> out, const Station& self, const Neighbour& asker);

/// Reads nothing that it has not checked to lie in the frame.
[[nodiscard]] Received read_frame(std::span<const std::byte> frame, const Station& self);

}  // namespace natagg::worker
