// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/frame.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "daemon/frames.hpp"

namespace natagg::testing {
namespace {

using namespace aggregator::io;

std::string_view name(IoCounter verdict) {
  return kIoCounters[static_cast<std::size_t>(verdict)].name;
}

struct Case {
  const char* description;
  std::function<void(FrameSpec&)> change;
  IoCounter verdict;
};

const Case kUdpCases[] = {
    {"a plain datagram", [](FrameSpec&) {}, IoCounter::kRxDatagrams},
    {"to the second shard", [](FrameSpec& f) { f.to_port = kOurPort + 1; },
     IoCounter::kRxDatagrams},
    {"with Ethernet's padding", [](FrameSpec& f) { f.padding = 13; }, IoCounter::kRxDatagrams},
    {"with an empty payload", [](FrameSpec& f) { f.payload.clear(); }, IoCounter::kRxDatagrams},
    {"without a UDP checksum", [](FrameSpec& f) { f.udp_checksum = UdpChecksum::kZero; },
     IoCounter::kRxDatagrams},
    {"with a VLAN tag", [](FrameSpec& f) { f.tags = {0x6007}; }, IoCounter::kRxDatagrams},
    {"marked for ECN", [](FrameSpec& f) { f.service = 3; }, IoCounter::kRxDatagrams},
    {"that may be fragmented", [](FrameSpec& f) { f.fragment = 0; }, IoCounter::kRxDatagrams},

    {"for another MAC address", [](FrameSpec& f) { f.to_mac = kTheirMac; },
     IoCounter::kDropOtherMac},
    {"for a multicast MAC address", [](FrameSpec& f) { f.to_mac = multicast_mac(0xEF4E4100); },
     IoCounter::kDropOtherMac},
    {"for all MAC addresses", [](FrameSpec& f) { f.to_mac = kBroadcastMac; },
     IoCounter::kDropOtherMac},
    {"from a multicast MAC address", [](FrameSpec& f) { f.from_mac = multicast_mac(0xEF4E4100); },
     IoCounter::kDropBadSource},
    {"from our own MAC address", [](FrameSpec& f) { f.from_mac = kOurMac; },
     IoCounter::kDropBadSource},
    {"with two VLAN tags",
     [](FrameSpec& f) {
       f.tags = {7, 8};
     },
     IoCounter::kDropQinq},
    {"with a service tag",
     [](FrameSpec& f) {
       f.tags = {7};
       f.tag_type = 0x88A8;
     },
     IoCounter::kDropQinq},
    {"of IPv6", [](FrameSpec& f) { f.ether_type = 0x86DD; }, IoCounter::kDropEtherType},
    {"of 802.3 length", [](FrameSpec& f) { f.ether_type = 46; }, IoCounter::kDropEtherType},
    {"of IP version 6 in an IPv4 frame", [](FrameSpec& f) { f.version_and_words = 0x65; },
     IoCounter::kDropIpMalformed},
    {"with an IPv4 header of 16 bytes", [](FrameSpec& f) { f.version_and_words = 0x44; },
     IoCounter::kDropIpMalformed},
    {"with IPv4 options", [](FrameSpec& f) { f.version_and_words = 0x46; },
     IoCounter::kDropIpOptions},
    {"longer than its frame", [](FrameSpec& f) { f.total_length_error = 1; },
     IoCounter::kDropIpLength},
    {"shorter than IPv4's header", [](FrameSpec& f) { f.total_length_error = -14; },
     IoCounter::kDropIpLength},
    {"first of several fragments", [](FrameSpec& f) { f.fragment = 0x2000; },
     IoCounter::kDropIpFragment},
    {"last of several fragments", [](FrameSpec& f) { f.fragment = 0x0001; },
     IoCounter::kDropIpFragment},
    {"with a wrong IPv4 checksum", [](FrameSpec& f) { f.ip_checksum_good = false; },
     IoCounter::kDropIpChecksum},
    {"for another IPv4 address", [](FrameSpec& f) { f.to = kOurAddress + 1; },
     IoCounter::kDropIpAddress},
    {"for an IPv4 multicast group", [](FrameSpec& f) { f.to = 0xEF4E4100; },
     IoCounter::kDropIpAddress},
    {"from address 0.0.0.0", [](FrameSpec& f) { f.from = 0; }, IoCounter::kDropBadSource},
    {"from a loopback address", [](FrameSpec& f) { f.from = 0x7F000001; },
     IoCounter::kDropBadSource},
    {"from a multicast group", [](FrameSpec& f) { f.from = 0xEF4E4100; },
     IoCounter::kDropBadSource},
    {"from the broadcast address", [](FrameSpec& f) { f.from = 0xFFFFFFFF; },
     IoCounter::kDropBadSource},
    {"from our own address", [](FrameSpec& f) { f.from = kOurAddress; }, IoCounter::kDropBadSource},
    {"of TCP", [](FrameSpec& f) { f.protocol = 6; }, IoCounter::kDropIpProtocol},
    {"longer in UDP than in IPv4", [](FrameSpec& f) { f.udp_length_error = 1; },
     IoCounter::kDropUdpLength},
    {"shorter in UDP than in IPv4", [](FrameSpec& f) { f.udp_length_error = -1; },
     IoCounter::kDropUdpLength},
    {"cut inside UDP's header",
     [](FrameSpec& f) {
       f.payload.clear();
       f.total_length_error = -1;
     },
     IoCounter::kDropUdpLength},
    {"to the port below ours", [](FrameSpec& f) { f.to_port = kOurPort - 1; },
     IoCounter::kDropUdpPort},
    {"to the port above ours", [](FrameSpec& f) { f.to_port = kOurPort + 2; },
     IoCounter::kDropUdpPort},
    {"from port 0", [](FrameSpec& f) { f.from_port = 0; }, IoCounter::kDropBadSource},
    {"with a wrong UDP checksum", [](FrameSpec& f) { f.udp_checksum = UdpChecksum::kWrong; },
     IoCounter::kDropUdpChecksum},
    {"with a partial UDP checksum over a wire",
     [](FrameSpec& f) { f.udp_checksum = UdpChecksum::kPartial; }, IoCounter::kDropUdpChecksum},
};

TEST(Frame, OfUdpIsTakenOrDroppedForItsReason) {
  for (const Case& test : kUdpCases) {
    FrameSpec spec;
    test.change(spec);
    const Frame frame = parse_frame(udp_frame(spec), kSelf);
    EXPECT_EQ(name(frame.verdict), name(test.verdict)) << test.description;
  }
}

TEST(Frame, YieldsPayloadShardAndTheWayBack) {
  FrameSpec spec;
  spec.tags = {0x6007};
  spec.to_port = kOurPort + 1;
  spec.payload = filled(100);
  spec.padding = 3;
  const Frame frame = parse_frame(udp_frame(spec), kSelf);
  EXPECT_EQ(frame.network, 18);
  EXPECT_EQ(frame.payload, 18 + 20 + 8);
  EXPECT_EQ(frame.length, 100);
  EXPECT_EQ(frame.shard, 1);
  EXPECT_EQ(frame.source.endpoint, (proto::Endpoint{kTheirAddress, kTheirPort}));
  EXPECT_EQ(unpack_link(frame.source.link), (Link{.mac = kTheirMac, .tci = 0x6007}));
}

TEST(Frame, TellsOfCongestionWhereASwitchHasMarkedIt) {
  for (const auto& [service, congested] : {std::pair{0U, false},
                                           {1U, false},
                                           {2U, false},
                                           {3U, true},
                                           {0xB8U, false},
                                           {0xBBU, true}}) {
    FrameSpec spec;
    spec.service = service;
    EXPECT_EQ(parse_frame(udp_frame(spec), kSelf).congested, congested) << service;
  }
}

TEST(Frame, OfAnUntaggedPeerKeepsNoTag) {
  const Frame frame = parse_frame(udp_frame({}), kSelf);
  EXPECT_EQ(unpack_link(frame.source.link), (Link{.mac = kTheirMac, .tci = 0}));
}

TEST(Frame, WithPartialChecksumIsTakenFromThisMachinesKernel) {
  Host self = kSelf;
  self.accepts_partial_checksums = true;
  FrameSpec spec;
  spec.udp_checksum = UdpChecksum::kPartial;
  EXPECT_EQ(parse_frame(udp_frame(spec), self).verdict, IoCounter::kRxDatagrams);
  spec.udp_checksum = UdpChecksum::kWrong;
  EXPECT_EQ(parse_frame(udp_frame(spec), self).verdict, IoCounter::kDropUdpChecksum);
}

TEST(Frame, VerifiedByTheDeviceIsNotVerifiedAgain) {
  FrameSpec spec;
  spec.ip_checksum_good = false;
  spec.udp_checksum = UdpChecksum::kWrong;
  const Verified both{.ip_checksum = true, .udp_checksum = true};
  EXPECT_EQ(parse_frame(udp_frame(spec), kSelf, both).verdict, IoCounter::kRxDatagrams);
  const Verified ip{.ip_checksum = true, .udp_checksum = false};
  EXPECT_EQ(parse_frame(udp_frame(spec), kSelf, ip).verdict, IoCounter::kDropUdpChecksum);
}

TEST(Frame, OfJumboSizeIsVerifiedOverItsWholeLength) {
  FrameSpec spec;
  for (std::size_t size : {std::size_t{8896}, std::size_t{8897}}) {
    spec.payload = filled(size);
    Bytes frame = udp_frame(spec);
    EXPECT_EQ(parse_frame(frame, kSelf).verdict, IoCounter::kRxDatagrams) << size;
    frame.back() ^= std::byte{1};
    EXPECT_EQ(parse_frame(frame, kSelf).verdict, IoCounter::kDropUdpChecksum) << size;
  }
}

TEST(Frame, CutAnywhereIsNeverTaken) {
  FrameSpec tagged;
  tagged.tags = {7};
  ArpSpec arp;
  arp.padding = 0;
  for (const Bytes& whole :
       {udp_frame({}), udp_frame(tagged), echo_frame({}), echo_frame(tagged), arp_frame(arp)}) {
    const IoCounter good = parse_frame(whole, kSelf).verdict;
    for (std::size_t size = 0; size < whole.size(); ++size) {
      // A copy of exactly that size, so that a sanitizer sees any read beyond it.
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NE(parse_frame(cut, kSelf).verdict, good) << size << " of " << hex(whole);
    }
  }
}

TEST(Frame, EchoRequestsAreTakenOrDroppedForTheirReason) {
  EXPECT_EQ(parse_frame(echo_frame({}), kSelf).verdict, IoCounter::kRxEcho);
  EXPECT_EQ(parse_frame(echo_frame({}, 0), kSelf).verdict, IoCounter::kDropIcmpType);
  EXPECT_EQ(parse_frame(echo_frame({}, 3), kSelf).verdict, IoCounter::kDropIcmpType);
  EXPECT_EQ(parse_frame(echo_frame({}, 8, 1), kSelf).verdict, IoCounter::kDropIcmpType);
  EXPECT_EQ(parse_frame(echo_frame({}, 8, 0, false), kSelf).verdict, IoCounter::kDropIcmpMalformed);
  FrameSpec broadcast;
  broadcast.to_mac = kBroadcastMac;
  EXPECT_EQ(parse_frame(echo_frame(broadcast), kSelf).verdict, IoCounter::kDropOtherMac);
}

TEST(Frame, ArpIsTakenOrDroppedForItsReason) {
  const auto verdict = [](const std::function<void(ArpSpec&)>& change) {
    ArpSpec spec;
    change(spec);
    return std::string{name(parse_frame(arp_frame(spec), kSelf).verdict)};
  };
  EXPECT_EQ(verdict([](ArpSpec&) {}), "rx_arp");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.to_mac = kOurMac; }), "rx_arp");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.tags = {7}; }), "rx_arp");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.sender = 0; }), "rx_arp");  // a probe (RFC 5227)
  EXPECT_EQ(verdict([](ArpSpec& a) { a.target = kOurAddress + 1; }), "drop_arp_other");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.operation = 2; }), "drop_arp_other");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.operation = 3; }), "drop_arp_malformed");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.hardware = 6; }), "drop_arp_malformed");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.protocol = 0x86DD; }), "drop_arp_malformed");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.hardware_length = 8; }), "drop_arp_malformed");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.protocol_length = 16; }), "drop_arp_malformed");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.sender_mac = kBroadcastMac; }), "drop_arp_malformed");
  EXPECT_EQ(verdict([](ArpSpec& a) { a.sender = kOurAddress; }), "address_conflicts");
}

}  // namespace
}  // namespace natagg::testing
