// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/frame.hpp"

#include "aggregator/io/arp.hpp"
#include "aggregator/io/icmp.hpp"
#include "proto/net/checksum.hpp"

namespace natagg::aggregator::io {
namespace {

bool udp_checksum_ok(std::span<const std::byte> segment, const Ipv4Header& ip, const UdpHeader& udp,
                     const Host& self) {
  const std::uint16_t field = udp.checksum.value();
  if (field == 0) return true;
  const std::uint16_t pseudo = pseudo_header_sum(ip.source.value(), ip.destination.value(),
                                                 kProtocolUdp, udp.length.value());
  if (self.accepts_partial_checksums && field == pseudo) return true;
  return ones_add(pseudo, ones_sum(segment)) == 0xFFFF;
}

IoCounter check_udp(std::span<const std::byte> segment, const Ipv4Header& ip, const Host& self,
                    Verified verified, Frame& result) {
  if (segment.size() < sizeof(UdpHeader)) return IoCounter::kDropUdpLength;
  const auto udp = read_at<UdpHeader>(segment, 0);
  if (udp.length.value() != segment.size()) return IoCounter::kDropUdpLength;
  const int shard = udp.destination.value() - self.first_port;
  if (shard < 0 || shard >= self.ports) return IoCounter::kDropUdpPort;
  if (udp.source.value() == 0) return IoCounter::kDropBadSource;
  if (!verified.udp_checksum && !udp_checksum_ok(segment, ip, udp, self)) {
    return IoCounter::kDropUdpChecksum;
  }
  result.payload =
      static_cast<std::uint16_t>(result.network + sizeof(Ipv4Header) + sizeof(UdpHeader));
  result.length = static_cast<std::uint16_t>(segment.size() - sizeof(UdpHeader));
  result.shard = static_cast<std::uint16_t>(shard);
  result.source.endpoint = {ip.source.value(), udp.source.value()};
  return IoCounter::kRxDatagrams;
}

IoCounter check_ipv4(std::span<const std::byte> packet, const Host& self, Verified verified,
                     Frame& result) {
  if (packet.size() < sizeof(Ipv4Header)) return IoCounter::kDropRunt;
  const auto ip = read_at<Ipv4Header>(packet, 0);
  if (ip.version_and_words >> 4 != 4 || (ip.version_and_words & 0xF) < 5) {
    return IoCounter::kDropIpMalformed;
  }
  if (ip.version_and_words != kIpv4NoOptions) return IoCounter::kDropIpOptions;
  const std::size_t length = ip.total_length.value();
  if (length < sizeof(Ipv4Header) || length > packet.size()) return IoCounter::kDropIpLength;
  if ((ip.fragment.value() & kFragmentMask) != 0) return IoCounter::kDropIpFragment;
  if (!verified.ip_checksum && ones_sum(packet.first(sizeof(Ipv4Header))) != 0xFFFF) {
    return IoCounter::kDropIpChecksum;
  }
  if (ip.destination.value() != self.address) return IoCounter::kDropIpAddress;
  if (!is_unicast(ip.source.value()) || ip.source.value() == self.address) {
    return IoCounter::kDropBadSource;
  }
  const auto segment = packet.subspan(sizeof(Ipv4Header), length - sizeof(Ipv4Header));
  result.congested = (ip.service & net::kEcnMask) == net::kEcnExperienced;
  if (ip.protocol == kProtocolUdp) return check_udp(segment, ip, self, verified, result);
  if (ip.protocol == kProtocolIcmp) return check_echo(segment);
  return IoCounter::kDropIpProtocol;
}

}  // namespace

Frame parse_frame(std::span<const std::byte> frame, const Host& self, Verified verified) {
  Frame result;
  const auto decided = [&](IoCounter verdict) {
    result.verdict = verdict;
    return result;
  };

  if (frame.size() < sizeof(EthernetHeader)) return decided(IoCounter::kDropRunt);
  const auto ethernet = read_at<EthernetHeader>(frame, 0);
  const bool broadcast = ethernet.destination == kBroadcastMac;
  if (ethernet.destination != self.mac && !broadcast) return decided(IoCounter::kDropOtherMac);
  if (ethernet.source.is_group() || ethernet.source == self.mac) {
    return decided(IoCounter::kDropBadSource);
  }

  Link link{.mac = ethernet.source, .tci = 0};
  std::uint16_t type = ethernet.type.value();
  std::size_t network = sizeof(EthernetHeader);
  if (type == kEtherVlan) {
    if (frame.size() < network + sizeof(VlanTag)) return decided(IoCounter::kDropRunt);
    const auto tag = read_at<VlanTag>(frame, network);
    link.tci = tag.tci.value();
    type = tag.type.value();
    network += sizeof(VlanTag);
  }
  if (type == kEtherQinq || type == kEtherVlan) return decided(IoCounter::kDropQinq);

  result.network = static_cast<std::uint16_t>(network);
  result.source.link = pack(link);
  result.source.interface = self.interface;
  const auto packet = frame.subspan(network);
  if (type == kEtherArp) return decided(check_arp(packet, self));
  if (type != kEtherIpv4) return decided(IoCounter::kDropEtherType);
  // An IPv4 packet for one host in a frame for all is never ours (RFC 1122, 3.3.6).
  if (broadcast) return decided(IoCounter::kDropOtherMac);
  return decided(check_ipv4(packet, self, verified, result));
}

}  // namespace natagg::aggregator::io
