// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/captured_frame.hpp"

#include <algorithm>

#include "proto/net/headers.hpp"

namespace natagg::tools {
namespace {

namespace io = net;

constexpr std::size_t kMaxTags = 2;
constexpr std::uint16_t kFragmentOffset = 0x1FFF;
constexpr std::uint16_t kMoreFragments = 0x2000;

// "Linux cooked" headers, of captures on all interfaces: only what follows is of interest.
constexpr std::size_t kCookedBytes = 16;
constexpr std::size_t kCookedType = 14;
constexpr std::size_t kCooked2Bytes = 20;
constexpr std::size_t kCooked2Type = 0;

template <typename T>
std::optional<T> read(std::span<const std::byte> bytes, std::size_t offset) {
  if (bytes.size() < sizeof(T) || offset > bytes.size() - sizeof(T)) return std::nullopt;
  return io::read_at<T>(bytes, offset);
}

/// Offset of the IPv4 header behind a link header of `size` bytes whose type is at `type_at`.
std::optional<std::size_t> behind_tags(std::span<const std::byte> captured, std::size_t size,
                                       std::size_t type_at) {
  auto type = read<proto::Be16>(captured, type_at);
  for (std::size_t tags = 0; type; ++tags) {
    if (type->value() == io::kEtherIpv4) return size;
    const bool tagged = type->value() == io::kEtherVlan || type->value() == io::kEtherQinq;
    if (!tagged || tags == kMaxTags) return std::nullopt;
    type = read<proto::Be16>(captured, size + offsetof(io::VlanTag, type));
    size += sizeof(io::VlanTag);
  }
  return std::nullopt;
}

std::optional<std::size_t> network_offset(Link link, std::span<const std::byte> captured) {
  switch (link) {
    case Link::kEthernet:
      return behind_tags(captured, sizeof(io::EthernetHeader), offsetof(io::EthernetHeader, type));
    case Link::kCooked: return behind_tags(captured, kCookedBytes, kCookedType);
    case Link::kCooked2: return behind_tags(captured, kCooked2Bytes, kCooked2Type);
    case Link::kRawIpv4: return 0;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CapturedDatagram> find_datagram(Link link, std::span<const std::byte> captured) {
  const auto network = network_offset(link, captured);
  if (!network) return std::nullopt;
  const auto ip = read<io::Ipv4Header>(captured, *network);
  if (!ip || ip->version_and_words >> 4 != 4 || ip->protocol != io::kProtocolUdp) {
    return std::nullopt;
  }
  const std::size_t header = (ip->version_and_words & 0xFU) * 4;
  const std::uint16_t fragment = ip->fragment.value();
  if (header < sizeof(io::Ipv4Header) || (fragment & kFragmentOffset) != 0) return std::nullopt;
  const auto udp = read<io::UdpHeader>(captured, *network + header);
  if (!udp || udp->length.value() < sizeof(io::UdpHeader)) return std::nullopt;

  CapturedDatagram datagram{
      .from = {ip->source.value(), udp->source.value()},
      .to = {ip->destination.value(), udp->destination.value()},
      .payload = captured.subspan(*network + header + sizeof(io::UdpHeader)),
      .length = udp->length.value() - sizeof(io::UdpHeader),
      .fragment = (fragment & kMoreFragments) != 0,
  };
  // Short frames are padded on Ethernet.
  datagram.payload = datagram.payload.first(std::min(datagram.payload.size(), datagram.length));
  return datagram;
}

}  // namespace natagg::tools
