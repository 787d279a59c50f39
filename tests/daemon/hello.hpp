// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The first packets of a worker and an aggregator, and the frame around an answer.
#pragma once

#include <utility>

#include "daemon/frames.hpp"
#include "proto/packet.hpp"

namespace natagg::testing {

template <typename T>
std::span<const std::byte> raw(const T& value) {
  return std::as_bytes(std::span{&value, 1});
}

inline constexpr proto::Be64 kInstance{0x1122'3344'5566'7788};

/// Padded to `size` bytes.
inline Bytes hello(std::uint32_t job, std::size_t size) {
  proto::Header header = proto::make_header(proto::Type::kHello);
  header.job = proto::Be32{job};
  const proto::HelloBody body{.instance = kInstance};
  Bytes datagram = Writer{}.bytes(raw(header)).bytes(raw(body)).take();
  datagram.resize(size);
  return datagram;
}

struct OfferTerms {
  std::uint16_t shards = 1;
  std::uint16_t max_values = 0;
  std::uint16_t max_window = 0;
};

/// Padded to `size` bytes.
inline Bytes offer(std::uint32_t job, OfferTerms terms, std::size_t size) {
  proto::Header header = proto::make_header(proto::Type::kOffer);
  header.job = proto::Be32{job};
  const proto::OfferBody body{.instance = kInstance,
                              .shards = proto::Be16{terms.shards},
                              .max_values = proto::Be16{terms.max_values},
                              .max_window = proto::Be16{terms.max_window},
                              .max_workers = proto::Be16{1024}};
  Bytes datagram = Writer{}.bytes(raw(header)).bytes(raw(body)).take();
  datagram.resize(size);
  return datagram;
}

/// The frame of the daemon's answer to `spec`, but for its payload.
inline FrameSpec reply_to(FrameSpec spec) {
  std::swap(spec.to_mac, spec.from_mac);
  std::swap(spec.to, spec.from);
  std::swap(spec.to_port, spec.from_port);
  spec.id = 0;
  spec.fragment = 0x4000;
  spec.ttl = 64;
  spec.padding = 0;
  return spec;
}

}  // namespace natagg::testing
