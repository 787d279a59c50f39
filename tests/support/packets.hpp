// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Hand-made packets for tests of the cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "proto/operation.hpp"
#include "proto/packet.hpp"

namespace natagg::test {

using Packet = std::vector<std::byte>;

/// `header`, then `body`, then zeros up to `size` bytes in all.
template <typename Body>
Packet control_packet(const proto::Header& header, const Body& body, std::size_t size = 0) {
  Packet packet(sizeof(header) + sizeof(body));
  std::memcpy(packet.data(), &header, sizeof(header));
  std::memcpy(packet.data() + sizeof(header), &body, sizeof(body));
  if (packet.size() < size) packet.resize(size);
  return packet;
}

inline Packet control_packet(const proto::Header& header) {
  Packet packet(sizeof(header));
  std::memcpy(packet.data(), &header, sizeof(header));
  return packet;
}

/// Why a worker leaves, but over a mismatch: because of `rank`, if of any.
inline proto::LeaveBody leave_body(proto::LeaveReason reason,
                                   std::uint16_t rank = proto::kAggregatorRank) {
  proto::LeaveBody body{};
  body.rank = proto::Be16{rank};
  body.other_rank = proto::Be16{proto::kAggregatorRank};
  body.reason = reason;
  return body;
}

/// `header` with its count set, then the values.
inline Packet value_packet(proto::Header header, std::span<const std::uint8_t> values) {
  header.count = proto::Be16{static_cast<std::uint16_t>(values.size())};
  Packet packet(sizeof(header) + values.size());
  std::memcpy(packet.data(), &header, sizeof(header));
  std::memcpy(packet.data() + sizeof(header), values.data(), values.size());
  return packet;
}

/// What an aggregator's Outgoing looks like on the wire.
template <typename Outgoing>
Packet wire(const Outgoing& outgoing) {
  Packet packet(outgoing.head.begin(), outgoing.head.end());
  const auto body = std::as_bytes(outgoing.body);
  packet.insert(packet.end(), body.begin(), body.end());
  packet.resize(packet.size() + outgoing.padding);
  packet.insert(packet.end(), outgoing.tail.begin(), outgoing.tail.end());
  return packet;
}

}  // namespace natagg::test
