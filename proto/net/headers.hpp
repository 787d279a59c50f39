// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The link, network and transport headers that natagg meets, as they stand in a frame, for those
// parts that make frames themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "proto/endian.hpp"

namespace natagg::net {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  constexpr bool operator==(const MacAddress&) const = default;
  /// Multicast or broadcast: never a source, never a reply's destination.
  [[nodiscard]] constexpr bool is_group() const { return (bytes[0] & 1) != 0; }
};

inline constexpr MacAddress kBroadcastMac{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};

/// RFC 1112: the group's low 23 bits behind 01:00:5e.
[[nodiscard]] constexpr MacAddress multicast_mac(std::uint32_t group) {
  return {{0x01, 0x00, 0x5E, static_cast<std::uint8_t>(group >> 16 & 0x7F),
           static_cast<std::uint8_t>(group >> 8), static_cast<std::uint8_t>(group)}};
}

inline constexpr std::uint16_t kEtherIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherArp = 0x0806;
inline constexpr std::uint16_t kEtherVlan = 0x8100;
inline constexpr std::uint16_t kEtherQinq = 0x88A8;

struct EthernetHeader {
  MacAddress destination;
  MacAddress source;
  proto::Be16 type;
};

/// Follows EthernetHeader when its type is kEtherVlan.
struct VlanTag {
  proto::Be16 tci;  // priority, drop eligible, VLAN
  proto::Be16 type;
};

struct ArpPacket {
  proto::Be16 hardware;  // 1: Ethernet
  proto::Be16 protocol;  // kEtherIpv4
  std::uint8_t hardware_length;
  std::uint8_t protocol_length;
  proto::Be16 operation;  // 1 request, 2 reply
  MacAddress sender_mac;
  proto::Be32 sender_address;
  MacAddress target_mac;
  proto::Be32 target_address;
};

struct Ipv4Header {
  std::uint8_t version_and_words;
  std::uint8_t service;
  proto::Be16 total_length;
  proto::Be16 id;
  proto::Be16 fragment;  // flags and offset
  std::uint8_t ttl;
  std::uint8_t protocol;
  proto::Be16 checksum;
  proto::Be32 source;
  proto::Be32 destination;
};

inline constexpr std::uint8_t kIpv4NoOptions = 0x45;
// The last two bits of Ipv4Header::service (RFC 3168).
inline constexpr std::uint8_t kEcnMask = 3;
inline constexpr std::uint8_t kEcnCapable = 2;      // mark it rather than drop it
inline constexpr std::uint8_t kEcnExperienced = 3;  // marked
inline constexpr std::uint16_t kDontFragment = 0x4000;
inline constexpr std::uint16_t kFragmentMask = 0x3FFF;  // more fragments, or an offset
inline constexpr std::uint8_t kProtocolIcmp = 1;
inline constexpr std::uint8_t kProtocolIgmp = 2;
inline constexpr std::uint8_t kProtocolUdp = 17;
inline constexpr std::uint8_t kTtl = 64;
inline constexpr std::uint8_t kMulticastTtl = 1;  // the groups are link-local by intent

struct UdpHeader {
  proto::Be16 source;
  proto::Be16 destination;
  proto::Be16 length;
  proto::Be16 checksum;  // 0: none, which IPv4 allows
};

struct IcmpEcho {
  std::uint8_t type;  // 8 request, 0 reply
  std::uint8_t code;
  proto::Be16 checksum;
  proto::Be16 id;
  proto::Be16 sequence;
};

struct IgmpPacket {
  std::uint8_t type;
  std::uint8_t max_response;
  proto::Be16 checksum;
  proto::Be32 group;
};

static_assert(sizeof(MacAddress) == 6 && sizeof(EthernetHeader) == 14 && sizeof(VlanTag) == 4);
static_assert(sizeof(ArpPacket) == 28 && sizeof(Ipv4Header) == 20 && sizeof(UdpHeader) == 8);
static_assert(sizeof(IcmpEcho) == 8 && sizeof(IgmpPacket) == 8);

/// The header at `offset`; the caller has checked that it lies inside.
template <typename T>
[[nodiscard]] T read_at(std::span<const std::byte> bytes, std::size_t offset) {
  static_assert(alignof(T) == 1);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
void write_at(std::span<std::byte> bytes, std::size_t offset, const T& value) {
  static_assert(alignof(T) == 1);
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

}  // namespace natagg::net
