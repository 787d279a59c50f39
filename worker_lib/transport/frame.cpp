// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/frame.hpp"

#include "proto/net/checksum.hpp"

namespace natagg::worker {
namespace {

using namespace net;
using proto::Be16;
using proto::Be32;

constexpr std::uint16_t kHardwareEthernet = 1;
constexpr std::uint16_t kArpRequest = 1;

Received read_arp(std::span<const std::byte> packet) {
  if (packet.size() < sizeof(ArpPacket)) return {};
  const auto arp = read_at<ArpPacket>(packet, 0);
  if (arp.hardware.value() != kHardwareEthernet || arp.protocol.value() != kEtherIpv4 ||
      arp.hardware_length != sizeof(MacAddress) || arp.protocol_length != sizeof(Be32) ||
      arp.sender_mac.is_group()) {
    return {};
  }
  return Neighbour{.address = arp.sender_address.value(), .mac = arp.sender_mac};
}

bool checksum_ok(std::span<const std::byte> segment, const Ipv4Header& ip, const UdpHeader& udp) {
  if (udp.checksum.value() == 0) return true;
  const std::uint16_t pseudo = pseudo_header_sum(ip.source.value(), ip.destination.value(),
                                                 kProtocolUdp, udp.length.value());
  return ones_add(pseudo, ones_sum(segment)) == 0xFFFF;
}

Received read_ipv4(std::span<const std::byte> packet, const Station& self) {
  if (packet.size() < sizeof(Ipv4Header) + sizeof(UdpHeader)) return {};
  const auto ip = read_at<Ipv4Header>(packet, 0);
  const std::size_t length = ip.total_length.value();
  if (ip.version_and_words != kIpv4NoOptions || ip.protocol != kProtocolUdp ||
      (ip.fragment.value() & kFragmentMask) != 0 || length > packet.size() ||
      length < sizeof(Ipv4Header) + sizeof(UdpHeader) ||
      ip.destination.value() != self.endpoint.address ||
      ones_sum(packet.first(sizeof(Ipv4Header))) != 0xFFFF) {
    return {};
  }
  const auto segment = packet.subspan(sizeof(Ipv4Header), length - sizeof(Ipv4Header));
  const auto udp = read_at<UdpHeader>(segment, 0);
  if (udp.length.value() != segment.size() || udp.destination.value() != self.endpoint.port ||
      !checksum_ok(segment, ip, udp)) {
    return {};
  }
  return Datagram{.bytes = segment.subspan(sizeof(UdpHeader)),
                  .source = {.address = ip.source.value(), .port = udp.source.value()}};
}

}  // namespace

void write_frame_headers(std::span<std::byte> out, const Station& self, const MacAddress& mac,
                         const proto::Endpoint& to, std::size_t length) {
  write_at(out, 0,
           EthernetHeader{.destination = mac, .source = self.mac, .type = Be16{kEtherIpv4}});
  const auto udp_length = static_cast<std::uint16_t>(sizeof(UdpHeader) + length);
  Ipv4Header ip{};
  ip.version_and_words = kIpv4NoOptions;
  ip.total_length = Be16{static_cast<std::uint16_t>(sizeof(Ipv4Header) + udp_length)};
  ip.fragment = Be16{kDontFragment};
  ip.ttl = kTtl;
  ip.protocol = kProtocolUdp;
  ip.source = Be32{self.endpoint.address};
  ip.destination = Be32{to.address};
  ip.checksum = Be16{static_cast<std::uint16_t>(~ones_sum(std::as_bytes(std::span{&ip, 1})))};
  write_at(out, sizeof(EthernetHeader), ip);
  write_at(out, sizeof(EthernetHeader) + sizeof(Ipv4Header),
           UdpHeader{.source = Be16{self.endpoint.port},
                     .destination = Be16{to.port},
                     .length = Be16{udp_length},
                     .checksum = Be16{0}});
}

void write_arp_request(std::span<std::byte> out, const Station& self, std::uint32_t address) {
  write_at(
      out, 0,
      EthernetHeader{.destination = kBroadcastMac, .source = self.mac, .type = Be16{kEtherArp}});
  write_at(out, sizeof(EthernetHeader),
           ArpPacket{.hardware = Be16{kHardwareEthernet},
                     .protocol = Be16{kEtherIpv4},
                     .hardware_length = sizeof(MacAddress),
                     .protocol_length = sizeof(Be32),
                     .operation = Be16{kArpRequest},
                     .sender_mac = self.mac,
                     .sender_address = Be32{self.endpoint.address},
                     .target_mac = {},
                     .target_address = Be32{address}});
}

Received read_frame(std::span<const std::byte> frame, const Station& self) {
  if (frame.size() < sizeof(EthernetHeader)) return {};
  const auto ethernet = read_at<EthernetHeader>(frame, 0);
  const bool broadcast = ethernet.destination == kBroadcastMac;
  if (ethernet.destination != self.mac && !broadcast) return {};
  const auto packet = frame.subspan(sizeof(EthernetHeader));
  const std::uint16_t type = ethernet.type.value();
  if (type == kEtherArp) return read_arp(packet);
  if (type == kEtherIpv4 && !broadcast) return read_ipv4(packet, self);
  return {};
}

}  // namespace natagg::worker
