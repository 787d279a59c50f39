// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What one call of a shard wants sent. Holds its headers and bodies itself and refers to results
// and member lists where they are, so nothing is allocated and no value is copied.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "aggregator/core/peer.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

/// One datagram for one or more destinations. Each gets head, then body, then zeros, then tail.
struct Outgoing {
  std::span<const Peer> to;
  std::span<const std::byte> head;
  std::span<const std::uint8_t> body;  // a result's values, or empty
  std::size_t padding = 0;             // zero bytes after head and body
  std::span<const std::byte> tail{};   // proof and trailer of an authenticated datagram
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
    outgoing_[size_] = {.to = to,
                        .head = {heads_[size_].data(), sizeof(header)},
                        .body = {},
                        .padding = 0,
                        .tail = {}};
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

  // --- Sealing ---

  [[nodiscard]] Outgoing& operator[](std::size_t i) { return outgoing_[i]; }

  /// Marks datagram `i` as authenticated and gives it a tail, with a proof or without, to be
  /// written. The tail takes the place of padding, so that a padded datagram keeps its length.
  void make_tail(std::size_t i, bool proof) {
    const std::size_t size = sizeof(proto::Trailer) + (proof ? sizeof(proto::Proof) : 0);
    proto::Header header = proto::read_header(outgoing_[i].head);
    header.flags |= proto::kFlagAuthenticated;
    std::memcpy(heads_[i].data(), &header, sizeof(header));
    outgoing_[i].padding -= std::min(outgoing_[i].padding, size);
    outgoing_[i].tail = {tails_[i].data(), size};
  }
  void write_tail(std::size_t i, std::size_t offset, std::span<const std::byte> bytes) {
    std::memcpy(tails_[i].data() + offset, bytes.data(), bytes.size());
  }

 private:
  static constexpr std::size_t kLargestBody = sizeof(proto::WelcomeBody);

  std::size_t size_ = 0;
  std::array<Outgoing, kCapacity> outgoing_;
  std::array<std::array<std::byte, sizeof(proto::Header) + kLargestBody>, kCapacity> heads_;
  std::array<std::array<std::byte, sizeof(proto::Proof) + sizeof(proto::Trailer)>, kCapacity>
      tails_;
  std::array<Peer, kCapacity> peers_;
};

}  // namespace natagg::aggregator
