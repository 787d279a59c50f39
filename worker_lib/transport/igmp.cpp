// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/igmp.hpp"

#include <array>

#include "proto/net/checksum.hpp"

namespace natagg::worker {
namespace {

using namespace net;
using proto::Be16;
using proto::Be32;

constexpr std::uint8_t kQuery = 0x11;
constexpr std::uint8_t kReport = 0x16;
constexpr std::uint8_t kInternetworkControl = 0xC0;  // the precedence of such packets
constexpr std::size_t kIpAt = sizeof(EthernetHeader);
constexpr std::size_t kIpBytes = sizeof(Ipv4Header) + kRouterAlert;

std::uint16_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint16_t>(~ones_sum(bytes));
}

}  // namespace

void write_membership_report(std::span<std::byte> out, const Station& self, std::uint32_t group) {
  write_at(out, 0,
           EthernetHeader{
               .destination = multicast_mac(group), .source = self.mac, .type = Be16{kEtherIpv4}});
  Ipv4Header ip{};
  ip.version_and_words = 0x40 | kIpBytes / 4;
  ip.service = kInternetworkControl;
  ip.total_length = Be16{kIpBytes + sizeof(IgmpPacket)};
  ip.ttl = kMulticastTtl;
  ip.protocol = kProtocolIgmp;
  ip.source = Be32{self.endpoint.address};
  ip.destination = Be32{group};
  write_at(out, kIpAt, ip);
  write_at(out, kIpAt + sizeof(Ipv4Header), std::array<std::uint8_t, kRouterAlert>{0x94, 4, 0, 0});
  ip.checksum = Be16{checksum(out.subspan(kIpAt, kIpBytes))};
  write_at(out, kIpAt, ip);
  IgmpPacket igmp{.type = kReport, .max_response = 0, .checksum = Be16{0}, .group = Be32{group}};
  igmp.checksum = Be16{checksum(std::as_bytes(std::span{&igmp, 1}))};
  write_at(out, kIpAt + kIpBytes, igmp);
}

bool is_membership_query(std::span<const std::byte> frame) {
  if (frame.size() < kIpAt + sizeof(Ipv4Header) + sizeof(IgmpPacket)) return false;
  const auto ethernet = read_at<EthernetHeader>(frame, 0);
  if (!ethernet.destination.is_group() || ethernet.type.value() != kEtherIpv4) return false;
  const auto packet = frame.subspan(kIpAt);
  const auto ip = read_at<Ipv4Header>(packet, 0);
  const std::size_t header = 4 * (ip.version_and_words & 0xF);
  const std::size_t length = ip.total_length.value();
  return ip.version_and_words >> 4 == 4 && ip.protocol == kProtocolIgmp &&
         header >= sizeof(Ipv4Header) && length <= packet.size() &&
         length >= header + sizeof(IgmpPacket) && ones_sum(packet.first(header)) == 0xFFFF &&
         ones_sum(packet.subspan(header, length - header)) == 0xFFFF &&
         read_at<IgmpPacket>(packet, header).type == kQuery;
}

}  // namespace natagg::worker
