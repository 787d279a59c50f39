// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/arp.hpp"

namespace natagg::aggregator::io {
namespace {

constexpr std::uint16_t kHardwareEthernet = 1;
constexpr std::uint16_t kRequest = 1;
constexpr std::uint16_t kReply = 2;

ArpPacket make_arp(std::uint16_t operation, const Host& self) {
  ArpPacket arp{};
  arp.hardware = proto::Be16{kHardwareEthernet};
  arp.protocol = proto::Be16{kEtherIpv4};
  arp.hardware_length = sizeof(MacAddress);
  arp.protocol_length = 4;
  arp.operation = proto::Be16{operation};
  arp.sender_mac = self.mac;
  arp.sender_address = proto::Be32{self.address};
  return arp;
}

}  // namespace

IoCounter check_arp(std::span<const std::byte> packet, const Host& self) {
  if (packet.size() < sizeof(ArpPacket)) return IoCounter::kDropRunt;
  const auto arp = read_at<ArpPacket>(packet, 0);
  const std::uint16_t operation = arp.operation.value();
  if (arp.hardware.value() != kHardwareEthernet || arp.protocol.value() != kEtherIpv4 ||
      arp.hardware_length != sizeof(MacAddress) || arp.protocol_length != 4 ||
      arp.sender_mac.is_group() || (operation != kRequest && operation != kReply)) {
    return IoCounter::kDropArpMalformed;
  }
  if (arp.sender_address.value() == self.address && arp.sender_mac != self.mac) {
    return IoCounter::kAddressConflicts;
  }
  const bool for_us = operation == kRequest && arp.target_address.value() == self.address;
  return for_us ? IoCounter::kRxArp : IoCounter::kDropArpOther;
}

std::size_t answer_arp(std::span<std::byte> frame, std::size_t network, const Host& self) {
  const auto request = read_at<ArpPacket>(frame, network);
  ArpPacket reply = make_arp(kReply, self);
  reply.target_mac = request.sender_mac;
  reply.target_address = request.sender_address;
  write_at(frame, network, reply);

  auto ethernet = read_at<EthernetHeader>(frame, 0);
  ethernet.destination = ethernet.source;
  ethernet.source = self.mac;
  write_at(frame, 0, ethernet);
  return network + sizeof(ArpPacket);
}

std::array<std::byte, kArpFrameBytes> arp_announcement(const Host& self) {
  std::array<std::byte, kArpFrameBytes> frame;
  write_at(frame, 0,
           EthernetHeader{
               .destination = kBroadcastMac, .source = self.mac, .type = proto::Be16{kEtherArp}});
  ArpPacket arp = make_arp(kRequest, self);
  arp.target_address = arp.sender_address;
  write_at(frame, sizeof(EthernetHeader), arp);
  return frame;
}

}  // namespace natagg::aggregator::io
