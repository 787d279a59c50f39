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
#include "aggregator/core/outbox.hpp"
#include "aggregator/core/peer.hpp"
#include "aggregator/core/shard_config.hpp"

namespace natagg::aggregator {

class Shard {
 public:
  /// Throws std::invalid_argument naming the field when `config` is out of range.
  explicit Shard(const ShardConfig& config);
  ~Shard();
  Shard(Shard&&) noexcept;
  Shard& operator=(Shard&&) noexcept;

  /// Takes one UDP payload. What must be sent in answer is returned; the spans in it are valid
  /// until the next call of receive() or tick(). Never throws; allocates only when a session
  /// forms. `datagram` may be any bytes. `congested`: its IP packet was marked "congestion
  /// experienced" (RFC 3168).
  [[nodiscard]] std::span<const Outgoing> receive(std::span<const std::byte> datagram,
                                                  const Peer& source, Time now,
                                                  bool congested = false);

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
