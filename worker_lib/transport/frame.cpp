// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/frame.hpp"

#include <algorithm>

#include "proto/net/checksum.hpp"

namespace natagg::worker {
namespace {

using namespace net;
using proto::Be16;
using proto::Be32;

constexpr std::uint16_t kHardwareEthernet = 1;
constexpr std::uint16_t kArpRequest = 1;
constexpr std::uint16_t kArpReply = 2;
constexpr std::size_t kIpAt = sizeof(EthernetHeader);
constexpr std::size_t kUdpAt = kIpAt + sizeof(Ipv4Header);

ArpPacket make_arp(std::uint16_t operation, const Station& self) {
  return {.hardware = Be16{kHardwareEthernet},
          .protocol = Be16{kEtherIpv4},
          .hardware_length = sizeof(MacAddress),
          .protocol_length = sizeof(Be32),
          .operation = Be16{operation},
          .sender_mac = self.mac,
          .sender_address = Be32{self.endpoint.address},
          .target_mac = {},
          .target_address = {}};
}

Received read_arp(std::span<const std::byte> packet, const Station& self) {
  if (packet.size() < sizeof(ArpPacket)) return {};
  const auto arp = read_at<ArpPacket>(packet, 0);
  if (arp.hardware.value() != kHardwareEthernet || arp.protocol.value() != kEtherIpv4 ||
      arp.hardware_length != sizeof(MacAddress) || arp.protocol_length != sizeof(Be32) ||
      arp.sender_mac.is_group()) {
    return {};
  }
  return Neighbour{.address = arp.sender_address.value(),
                   .mac = arp.sender_mac,
                   .asks = arp.operation.value() == kArpRequest &&
                           arp.target_address.value() == self.endpoint.address};
}

std::uint16_t pseudo_sum(const Ipv4Header& ip, const UdpHeader& udp) {
  return pseudo_header_sum(ip.source.value(), ip.destination.value(), kProtocolUdp,
                           udp.length.value());
}

bool checksum_ok(std::span<const std::byte> segment, const Ipv4Header& ip, const UdpHeader& udp) {
  if (udp.checksum.value() == 0) return true;
  return ones_add(pseudo_sum(ip, udp), ones_sum(segment)) == 0xFFFF;
}

bool is_group(const proto::Endpoint& to, const Station& self) {
  return std::ranges::find(self.groups, to) != self.groups.end();
}

bool is_group(const MacAddress& to, const Station& self) {
  return std::ranges::any_of(self.groups, [&](const proto::Endpoint& group) {
    return multicast_mac(group.address) == to;
  });
}

Received read_ipv4(std::span<const std::byte> packet, const Station& self) {
  if (packet.size() < sizeof(Ipv4Header) + sizeof(UdpHeader)) return {};
  const auto ip = read_at<Ipv4Header>(packet, 0);
  const std::size_t length = ip.total_length.value();
  if (ip.version_and_words != kIpv4NoOptions || ip.protocol != kProtocolUdp ||
      (ip.fragment.value() & kFragmentMask) != 0 || length > packet.size() ||
      length < sizeof(Ipv4Header) + sizeof(UdpHeader) ||
      ones_sum(packet.first(sizeof(Ipv4Header))) != 0xFFFF) {
    return {};
  }
  const auto segment = packet.subspan(sizeof(Ipv4Header), length - sizeof(Ipv4Header));
  const auto udp = read_at<UdpHeader>(segment, 0);
  const proto::Endpoint to{.address = ip.destination.value(), .port = udp.destination.value()};
  if (udp.length.value() != segment.size() || (to != self.endpoint && !is_group(to, self)) ||
      !checksum_ok(segment, ip, udp)) {
    return {};
  }
  return Datagram{.bytes = segment.subspan(sizeof(UdpHeader)),
                  .source = {.address = ip.source.value(), .port = udp.source.value()},
                  .congested = (ip.service & kEcnMask) == kEcnExperienced};
}

}  // namespace

void write_frame_headers(std::span<std::byte> out, const Station& self, const MacAddress& mac,
                         const proto::Endpoint& to, std::size_t length) {
  write_at(out, 0,
           EthernetHeader{.destination = mac, .source = self.mac, .type = Be16{kEtherIpv4}});
  const auto udp_length = static_cast<std::uint16_t>(sizeof(UdpHeader) + length);
  Ipv4Header ip{};
  ip.version_and_words = kIpv4NoOptions;
  ip.service = kEcnCapable;
  ip.total_length = Be16{static_cast<std::uint16_t>(sizeof(Ipv4Header) + udp_length)};
  ip.fragment = Be16{kDontFragment};
  ip.ttl = kTtl;
  ip.protocol = kProtocolUdp;
  ip.source = Be32{self.endpoint.address};
  ip.destination = Be32{to.address};
  ip.checksum = Be16{static_cast<std::uint16_t>(~ones_sum(std::as_bytes(std::span{&ip, 1})))};
  write_at(out, kIpAt, ip);
  write_at(out, kUdpAt,
           UdpHeader{.source = Be16{self.endpoint.port},
                     .destination = Be16{to.port},
                     .length = Be16{udp_length},
                     .checksum = Be16{0}});
}

void write_udp_checksum(std::span<std::byte> frame) {
  const auto ip = read_at<Ipv4Header>(frame, kIpAt);
  auto udp = read_at<UdpHeader>(frame, kUdpAt);
  const std::uint16_t sum = ones_add(pseudo_sum(ip, udp), ones_sum(frame.subspan(kUdpAt)));
  // A computed zero is sent as its other form, since zero means "no checksum" (RFC 768).
  udp.checksum = Be16{sum == 0xFFFF ? sum : static_cast<std::uint16_t>(~sum)};
  write_at(frame, kUdpAt, udp);
}

void write_pseudo_checksum(std::span<std::byte> frame) {
  auto udp = read_at<UdpHeader>(frame, kUdpAt);
  udp.checksum = Be16{pseudo_sum(read_at<Ipv4Header>(frame, kIpAt), udp)};
  write_at(frame, kUdpAt, udp);
}

void write_arp_request(std::span<std::byte> out, const Station& self, std::uint32_t address) {
  write_at(
      out, 0,
      EthernetHeader{.destination = kBroadcastMac, .source = self.mac, .type = Be16{kEtherArp}});
  ArpPacket arp = make_arp(kArpRequest, self);
  arp.target_address = Be32{address};
  write_at(out, sizeof(EthernetHeader), arp);
}

void write_arp_reply(std::span<std::byte> out, const Station& self, const Neighbour& asker) {
  write_at(out, 0,
           EthernetHeader{.destination = asker.mac, .source = self.mac, .type = Be16{kEtherArp}});
  ArpPacket arp = make_arp(kArpReply, self);
  arp.target_mac = asker.mac;
  arp.target_address = Be32{asker.address};
  write_at(out, sizeof(EthernetHeader), arp);
}

Received read_frame(std::span<const std::byte> frame, const Station& self) {
  if (frame.size() < sizeof(EthernetHeader)) return {};
  const auto ethernet = read_at<EthernetHeader>(frame, 0);
  const bool broadcast = ethernet.destination == kBroadcastMac;
  if (ethernet.destination != self.mac && !broadcast && !is_group(ethernet.destination, self)) {
    return {};
  }
  const auto packet = frame.subspan(sizeof(EthernetHeader));
  const std::uint16_t type = ethernet.type.value();
  if (type == kEtherArp) return read_arp(packet, self);
  if (type == kEtherIpv4 && !broadcast) return read_ipv4(packet, self);
  return {};
}

}  // namespace natagg::worker
