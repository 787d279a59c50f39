// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include <gtest/gtest.h>

#include "aggregator/io/arp.hpp"
#include "aggregator/io/frame.hpp"
#include "aggregator/io/icmp.hpp"
#include "daemon/frames.hpp"

namespace natagg::testing {
namespace {

using namespace aggregator::io;

/// The frame that the daemon sends back for `frame`.
Bytes answer(Bytes frame) {
  const Frame parsed = parse_frame(frame, kSelf);
  std::size_t length = 0;
  if (parsed.verdict == IoCounter::kRxArp) length = answer_arp(frame, parsed.network, kSelf);
  if (parsed.verdict == IoCounter::kRxEcho) length = answer_echo(frame, parsed.network, kSelf);
  frame.resize(length);
  return frame;
}

Bytes expected_arp_reply(const std::vector<std::uint16_t>& tags) {
  ArpSpec reply;
  reply.to_mac = kTheirMac;
  reply.from_mac = kOurMac;
  reply.tags = tags;
  reply.operation = 2;
  reply.sender_mac = kOurMac;
  reply.sender = kOurAddress;
  reply.target_mac = kTheirMac;
  reply.target = kTheirAddress;
  reply.padding = 0;
  return arp_frame(reply);
}

TEST(ArpReply, HasEveryFieldOfOursAndTheirs) {
  EXPECT_EQ(hex(answer(arp_frame({}))), hex(expected_arp_reply({})));
}

TEST(ArpReply, CarriesTheRequestsTag) {
  ArpSpec request;
  request.tags = {0xA00C};
  EXPECT_EQ(hex(answer(arp_frame(request))), hex(expected_arp_reply({0xA00C})));
}

TEST(ArpReply, GoesToTheFramesSourceAndNamesTheArpSender) {
  // A proxy may ask for another.
  ArpSpec request;
  request.sender_mac = {{0x02, 0, 0, 0, 0, 0x77}};
  const Bytes reply = answer(arp_frame(request));
  EXPECT_EQ(read_at<EthernetHeader>(reply, 0).destination, kTheirMac);
  EXPECT_EQ(read_at<ArpPacket>(reply, 14).target_mac, request.sender_mac);
}

TEST(ArpAnnouncement, AsksAllForOurOwnAddress) {
  ArpSpec announcement;
  announcement.from_mac = kOurMac;
  announcement.sender_mac = kOurMac;
  announcement.sender = kOurAddress;
  announcement.padding = 0;
  EXPECT_EQ(hex(arp_announcement(kSelf)), hex(arp_frame(announcement)));
}

Bytes expected_echo_reply(FrameSpec request) {
  FrameSpec reply = request;
  reply.to_mac = kTheirMac;
  reply.from_mac = kOurMac;
  reply.id = 0;
  reply.fragment = 0x4000;
  reply.ttl = 64;
  reply.from = kOurAddress;
  reply.to = kTheirAddress;
  reply.padding = 0;
  return echo_frame(reply, 0);
}

TEST(EchoReply, HasEveryFieldOfOursAndTheirs) {
  for (std::size_t size : {0, 1, 2, 56, 1472, 8972}) {
    FrameSpec request;
    request.payload = filled(size);
    EXPECT_EQ(hex(answer(echo_frame(request))), hex(expected_echo_reply(request))) << size;
  }
}

TEST(EchoReply, CarriesTheRequestsTagAndServiceAndLeavesOutPadding) {
  FrameSpec request;
  request.tags = {0xE123};
  request.service = 0xB8;
  request.fragment = 0;
  request.padding = 9;
  EXPECT_EQ(hex(answer(echo_frame(request))), hex(expected_echo_reply(request)));
}

}  // namespace
}  // namespace natagg::testing
