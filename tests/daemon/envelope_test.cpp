// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/envelope.hpp"

#include <gtest/gtest.h>

#include "daemon/frames.hpp"
#include "proto/net/checksum.hpp"

namespace natagg::testing {
namespace {

using namespace aggregator::io;
using aggregator::Peer;

Peer peer(std::uint16_t tci = 0) {
  return {.endpoint = {kTheirAddress, kTheirPort}, .link = pack({.mac = kTheirMac, .tci = tci})};
}

FrameSpec expected_spec(const Bytes& payload) {
  FrameSpec spec;
  spec.to_mac = kTheirMac;
  spec.from_mac = kOurMac;
  spec.service = 2;  // may be marked for congestion
  spec.id = 0;
  spec.ttl = 64;
  spec.from = kOurAddress;
  spec.to = kTheirAddress;
  spec.from_port = kOurPort + 1;
  spec.to_port = kTheirPort;
  spec.payload = payload;
  return spec;
}

Bytes whole_frame(const Peer& to, const Bytes& payload, Offload offload = {}) {
  const Envelope envelope = make_envelope(
      kSelf, kOurPort + 1, to,
      {.length = static_cast<std::uint16_t>(payload.size()), .sum = ones_sum(payload)}, offload);
  return Writer{}.bytes(std::span{envelope.bytes}.first(envelope.length)).bytes(payload).take();
}

TEST(Envelope, HasEveryFieldForAUnicastPeer) {
  for (std::size_t size : {0, 1, 44, 1452, 1453, 8876}) {
    const Bytes payload = filled(size);
    EXPECT_EQ(hex(whole_frame(peer(), payload)), hex(udp_frame(expected_spec(payload)))) << size;
  }
}

TEST(Envelope, HasNoChecksumOfThePayloadWhereNobodyNeedsOne) {
  const Bytes payload = filled(44);
  FrameSpec spec = expected_spec(payload);
  spec.udp_checksum = UdpChecksum::kZero;
  EXPECT_EQ(hex(whole_frame(peer(), payload, {.no_udp_checksum = true})), hex(udp_frame(spec)));
}

TEST(Envelope, CarriesThePeersTag) {
  const Bytes payload = filled(44);
  FrameSpec spec = expected_spec(payload);
  spec.tags = {0x6007};
  EXPECT_EQ(hex(whole_frame(peer(0x6007), payload)), hex(udp_frame(spec)));
}

TEST(Envelope, OfAGroupHasItsMacAddressAndStaysOnTheLink) {
  const Bytes payload = filled(44);
  const Peer group{.endpoint = {0xEFCE'4103, 4790}, .link = pack({.mac = kTheirMac, .tci = 7})};
  FrameSpec spec = expected_spec(payload);
  spec.to_mac = {{0x01, 0x00, 0x5E, 0x4E, 0x41, 0x03}};
  spec.tags = {7};
  spec.ttl = 1;
  spec.to = 0xEFCE'4103;
  spec.to_port = 4790;
  EXPECT_EQ(hex(whole_frame(group, payload)), hex(udp_frame(spec)));
}

TEST(Envelope, NeverSendsAComputedChecksumOfZero) {
  // The two bytes that make the sum all ones.
  Bytes payload = filled(2);
  const Bytes first = whole_frame(peer(), payload);
  const std::uint16_t checksum = read_at<UdpHeader>(first, 34).checksum.value();
  const std::uint16_t word = ones_add(read_at<proto::Be16>(payload, 0).value(), checksum);
  payload = Writer{}.u16(word).take();
  const Bytes frame = whole_frame(peer(), payload);
  EXPECT_EQ(read_at<UdpHeader>(frame, 34).checksum.value(), 0xFFFF);
  EXPECT_EQ(hex(frame), hex(udp_frame(expected_spec(payload))));
}

TEST(Envelope, LeavesToTheDeviceWhatTheDeviceDoes) {
  const Bytes payload = filled(44);
  const Bytes frame = whole_frame(peer(), payload, {.ip_checksum = true, .udp_checksum = true});
  FrameSpec spec = expected_spec(payload);
  spec.udp_checksum = UdpChecksum::kPartial;
  const Bytes expected = udp_frame(spec);
  EXPECT_EQ(read_at<Ipv4Header>(frame, 14).checksum.value(), 0);
  EXPECT_EQ(read_at<UdpHeader>(frame, 34).checksum, read_at<UdpHeader>(expected, 34).checksum);
}

TEST(Link, SurvivesPacking) {
  for (const Link& link : {Link{}, Link{.mac = kBroadcastMac, .tci = 0xFFFF},
                           Link{.mac = {{1, 2, 3, 4, 5, 6}}, .tci = 0x8001}}) {
    EXPECT_EQ(unpack_link(pack(link)), link);
  }
}

}  // namespace
}  // namespace natagg::testing
