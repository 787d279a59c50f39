// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What one call of a shard wants sent. Holds its headers and bodies itself and refers to results
// and member lists where they are, so nothing is allocated and no value is copied.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "aggregator/core/peer.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

/// One datagram for one or more destinations. Each gets head, then body, then zeros.
struct Outgoing {
  std::span<const Peer> to;
  std::span<const std::byte> head;
  std::span<const std::uint8_t> body;  // a result's values, or empty
  std::size_t padding = 0;             // zero bytes after head and body
};

class Outbox {
 public:
  static constexpr std::size_t kCapacity = 4;  // more than one call ever sends

  void clear() { size_ = 0; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<const Outgoing> contents() const { return {outgoing_.data(), size_}; }

  /// To many; `to` must stay valid until the outbox is read.
  Outgoing& add(std::span<const Peer> to, const proto::Header& header) {
    std::memcpy(heads_[size_].data(), &header, sizeof(header));
    outgoing_[size_] = {
        .to = to, .head = {heads_[size_].data(), sizeof(header)}, .body = {}, .padding = 0};
    return outgoing_[size_++];
  }

  /// To one.
  Outgoing& add(const Peer& to, const proto::Header& header) {
    peers_[size_] = to;
    return add(std::span<const Peer>(&peers_[size_], 1), header);
  }

  /// A control packet.
  template <typename To, typename Body>
  Outgoing& add(const To& to, const proto::Header& header, const Body& body) {
    static_assert(sizeof(Body) <= kLargestBody);
    Outgoing& outgoing = add(to, header);
    std::byte* head = heads_[size_ - 1].data();
    std::memcpy(head + sizeof(header), &body, sizeof(body));
    outgoing.head = {head, sizeof(header) + sizeof(body)};
    return outgoing;
  }

 private:
  static constexpr std::size_t kLargestBody = sizeof(proto::WelcomeBody);

  std::size_t size_ = 0;
  std::array<Outgoing, kCapacity> outgoing_;
  std::array<std::array<std::byte, sizeof(proto::Header) + kLargestBody>, kCapacity> heads_;
  std::array<Peer, kCapacity> peers_;
};

}  // namespace natagg::aggregator
