// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Frames made by hand, byte by byte and with checksums computed the plain way, so that nothing
// here leans on the code under test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "aggregator/io/host.hpp"

namespace natagg::testing {

using Bytes = std::vector<std::byte>;

inline constexpr aggregator::io::MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x01}};
inline constexpr aggregator::io::MacAddress kTheirMac{{0x02, 0, 0, 0, 0, 0x99}};
inline constexpr std::uint32_t kOurAddress = 0x0A00'0001;    // 10.0.0.1
inline constexpr std::uint32_t kTheirAddress = 0x0A00'0063;  // 10.0.0.99
inline constexpr std::uint16_t kOurPort = 4790;
inline constexpr std::uint16_t kTheirPort = 40001;

inline constexpr aggregator::io::Host kSelf{.mac = kOurMac,
                                            .address = kOurAddress,
                                            .first_port = kOurPort,
                                            .ports = 2,
                                            .accepts_partial_checksums = false};

/// Appends big-endian fields.
class Writer {
 public:
  Writer& u8(unsigned value) { return put(value, 1); }
  Writer& u16(unsigned value) { return put(value, 2); }
  Writer& u32(std::uint32_t value) { return put(value, 4); }
  Writer& mac(const aggregator::io::MacAddress& mac) {
    for (std::uint8_t byte : mac.bytes) u8(byte);
    return *this;
  }
  Writer& bytes(std::span<const std::byte> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  [[nodiscard]] Bytes take() const { return bytes_; }

 private:
  Writer& put(std::uint32_t value, unsigned size) {
    for (unsigned i = size; i-- > 0;) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  Bytes bytes_;
};

inline Bytes filled(std::size_t size, unsigned first = 1) {
  Bytes bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(first + i));
  return bytes;
}

/// RFC 1071, as the RFC writes it.
inline std::uint16_t plain_checksum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  }
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

enum class UdpChecksum { kFull, kZero, kPartial, kWrong };

/// Everything about a frame from a worker; each test changes what it is about.
struct FrameSpec {
  aggregator::io::MacAddress to_mac = kOurMac;
  aggregator::io::MacAddress from_mac = kTheirMac;
  std::vector<std::uint16_t> tags;  // VLAN TCIs, outermost first
  std::uint16_t tag_type = 0x8100;
  std::uint16_t ether_type = 0x0800;
  unsigned version_and_words = 0x45;
  unsigned service = 0;
  int total_length_error = 0;
  unsigned id = 0x1234;
  unsigned fragment = 0x4000;
  unsigned ttl = 63;
  unsigned protocol = 17;
  bool ip_checksum_good = true;
  std::uint32_t from = kTheirAddress;
  std::uint32_t to = kOurAddress;
  std::uint16_t from_port = kTheirPort;
  std::uint16_t to_port = kOurPort;
  int udp_length_error = 0;
  UdpChecksum udp_checksum = UdpChecksum::kFull;
  Bytes payload = filled(5);
  std::size_t padding = 0;  // behind the IPv4 packet, as Ethernet's minimum makes it
};

inline Bytes link_header(const FrameSpec& spec) {
  Writer link;
  link.mac(spec.to_mac).mac(spec.from_mac);
  for (std::uint16_t tag : spec.tags) link.u16(spec.tag_type).u16(tag);
  return link.u16(spec.ether_type).take();
}

inline Bytes ipv4_frame(const FrameSpec& spec, const Bytes& segment) {
  const auto length =
      static_cast<unsigned>(static_cast<int>(20 + segment.size()) + spec.total_length_error);
  const auto header = [&](unsigned checksum) {
    return Writer{}
        .u8(spec.version_and_words)
        .u8(spec.service)
        .u16(length)
        .u16(spec.id)
        .u16(spec.fragment)
        .u8(spec.ttl)
        .u8(spec.protocol)
        .u16(checksum)
        .u32(spec.from)
        .u32(spec.to)
        .take();
  };
  const std::uint16_t checksum = plain_checksum(header(0));
  return Writer{}
      .bytes(link_header(spec))
      .bytes(header(spec.ip_checksum_good ? checksum : checksum ^ 0x0101U))
      .bytes(segment)
      .bytes(Bytes(spec.padding, std::byte{0xEE}))
      .take();
}

inline Bytes udp_segment(const FrameSpec& spec) {
  const auto length =
      static_cast<unsigned>(static_cast<int>(8 + spec.payload.size()) + spec.udp_length_error);
  const auto segment = [&](unsigned checksum) {
    return Writer{}
        .u16(spec.from_port)
        .u16(spec.to_port)
        .u16(length)
        .u16(checksum)
        .bytes(spec.payload)
        .take();
  };
  const Bytes pseudo = Writer{}.u32(spec.from).u32(spec.to).u16(17).u16(length).take();
  const std::uint16_t full = plain_checksum(Writer{}.bytes(pseudo).bytes(segment(0)).take());
  switch (spec.udp_checksum) {
    case UdpChecksum::kFull: return segment(full == 0 ? 0xFFFF : full);
    case UdpChecksum::kZero: return segment(0);
    case UdpChecksum::kPartial: return segment(static_cast<std::uint16_t>(~plain_checksum(pseudo)));
    case UdpChecksum::kWrong: return segment(full ^ 0x0101U);
  }
  return {};
}

inline Bytes udp_frame(const FrameSpec& spec) {
  return ipv4_frame(spec, udp_segment(spec));
}

/// An ICMP echo message with id 7, sequence 9 and the payload.
inline Bytes icmp_message(unsigned type, unsigned code, const Bytes& payload, bool good = true) {
  const auto message = [&](unsigned checksum) {
    return Writer{}.u8(type).u8(code).u16(checksum).u16(7).u16(9).bytes(payload).take();
  };
  const std::uint16_t checksum = plain_checksum(message(0));
  return message(good ? checksum : checksum ^ 0x0101U);
}

inline Bytes echo_frame(FrameSpec spec, unsigned type = 8, unsigned code = 0, bool good = true) {
  spec.protocol = 1;
  return ipv4_frame(spec, icmp_message(type, code, spec.payload, good));
}

struct ArpSpec {
  aggregator::io::MacAddress to_mac = aggregator::io::kBroadcastMac;
  std::vector<std::uint16_t> tags;
  unsigned hardware = 1;
  unsigned protocol = 0x0800;
  unsigned hardware_length = 6;
  unsigned protocol_length = 4;
  unsigned operation = 1;
  aggregator::io::MacAddress sender_mac = kTheirMac;
  std::uint32_t sender = kTheirAddress;
  aggregator::io::MacAddress target_mac{};
  std::uint32_t target = kOurAddress;
  std::size_t padding = 18;
  aggregator::io::MacAddress from_mac = kTheirMac;
};

inline Bytes arp_frame(const ArpSpec& spec) {
  FrameSpec link;
  link.to_mac = spec.to_mac;
  link.from_mac = spec.from_mac;
  link.tags = spec.tags;
  link.ether_type = 0x0806;
  return Writer{}
      .bytes(link_header(link))
      .u16(spec.hardware)
      .u16(spec.protocol)
      .u8(spec.hardware_length)
      .u8(spec.protocol_length)
      .u16(spec.operation)
      .mac(spec.sender_mac)
      .u32(spec.sender)
      .mac(spec.target_mac)
      .u32(spec.target)
      .bytes(Bytes(spec.padding))
      .take();
}

inline std::string hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 0xF];
  }
  return text;
}

}  // namespace natagg::testing
