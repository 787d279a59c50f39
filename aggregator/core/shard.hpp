// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A shard is the whole aggregator protocol for one UDP port, as a state machine: a datagram and
// the time go in, datagrams to send come out. It knows no socket, device, thread or clock, so the
// code that tests drive with a virtual network is the code that ships. One thread per shard.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "aggregator/core/counters.hpp"
#include "proto/endpoint.hpp"
#include "proto/kernels.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

/// Nanoseconds of any monotonic clock.
using Time = std::int64_t;

/// Where a datagram came from, and how to send one back. Two peers are the same when their
/// endpoints are; `link` is the I/O layer's own (source MAC, VLAN tag), kept and returned unread.
struct Peer {
  proto::Endpoint endpoint;
  std::uint64_t link = 0;
};

struct ShardConfig {
  std::uint16_t index = 0;   // of this shard in its aggregator
  std::uint16_t shards = 1;  // of this aggregator
  std::uint16_t max_jobs = 16;
  std::uint16_t max_workers = 1024;
  std::uint16_t max_window = 256;  // slots a session, a power of two
  std::uint16_t max_values = proto::kMaxValues;  // a packet; bounded by the device's MTU
  Time member_timeout = 1'500'000'000;  // silence after which a member counts as dead
  Time forming_timeout = 1'000'000'000;  // silence after which a rank loses its place while forming
  Time probe_wait = 100'000'000;  // how long a full session waits for multicast to be heard
  std::uint32_t multicast_address = 0;  // first group of the range; job j uses + j % 256; 0: never
  std::uint16_t multicast_port = 0;
  std::uint32_t first_epoch = 1;  // random in production, so that epochs outlive a restart
  std::uint32_t first_sequence = 0xFFFF'FF00;  // near the wrap, so that every job crosses it
  const Kernels* kernels = nullptr;  // nullptr: default_kernels()
};

/// One datagram for one or more destinations. Each gets head followed by body.
struct Outgoing {
  std::span<const Peer> to;
  std::span<const std::byte> head;
  std::span<const std::uint8_t> body;  // a result's values, or empty
  std::size_t padding = 0;             // zero bytes after head and body
};

class Shard {
 public:
  /// Throws std::invalid_argument naming the field when `config` is out of range.
  explicit Shard(const ShardConfig& config);
  ~Shard();
  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;

  /// Takes one UDP payload. What must be sent in answer is returned; the spans in it are valid
  /// until the next call of receive() or tick(). Never throws; allocates only when a session
  /// forms. `datagram` may be any bytes.
  [[nodiscard]] std::span<const Outgoing> receive(std::span<const std::byte> datagram,
                                                  const Peer& source, Time now);

  /// Finds silent members and finishes forming sessions. Call every 10 ms or so; the same rules
  /// hold for what it returns. Call again at once while it returns something.
  [[nodiscard]] std::span<const Outgoing> tick(Time now);

  [[nodiscard]] const Counters& counters() const;

  /// Sessions that are ready, and the slots in them that are open: for status and leak tests.
  struct Usage {
    std::size_t jobs = 0;
    std::size_t ready_sessions = 0;
    std::size_t open_slots = 0;
  };
  [[nodiscard]] Usage usage() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace natagg::aggregator
