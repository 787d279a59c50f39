// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Sends what a shard gives out, and finished frames, by a device queue or through the lcore that
// has one.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "aggregator/core/shard.hpp"
#include "aggregator/io/envelope.hpp"
#include "aggregator/io/handoff.hpp"
#include "aggregator/io/host.hpp"
#include "aggregator/io/io_counters.hpp"
#include "aggregator/io/port.hpp"
#include "proto/loss.hpp"

namespace natagg::aggregator::io {

struct TransmitConfig {
  Host self;
  std::uint16_t source_port = 0;
  std::optional<std::uint16_t> queue;  // nothing: `outbox` is another lcore's
  std::shared_ptr<MbufRing> outbox;    // with a queue: what others send through it; may be null
  double loss = 0;
  std::uint64_t loss_seed = 0;
};

class Transmitter {
 public:
  Transmitter(const Port& port, TransmitConfig config, IoCounters& counters);
  ~Transmitter();
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  void send(const Outgoing& datagram);
  /// A whole frame; takes the mbuf.
  void send_frame(rte_mbuf* frame);
  void send_copy(std::span<const std::byte> frame);
  /// Takes up what other lcores want sent by this one's queue. Returns how many frames.
  unsigned relay();
  /// Gives the device, or the ring, all that is left.
  void flush();

 private:
  rte_mbuf* make_payload(const Outgoing& datagram);
  void send_linear(const Outgoing& datagram, const Peer& to, Payload payload);
  void send_chained(rte_mbuf* shared, const Peer& to, Payload payload);
  void mark_offloads(rte_mbuf* frame, const Envelope& envelope) const;
  void flush_to_device(std::uint16_t queue);

  const Port& port_;
  const TransmitConfig config_;
  const Offload offload_;
  IoCounters& counters_;
  proto::Loss loss_;
  std::array<rte_mbuf*, kBurst> pending_;
  std::uint16_t count_ = 0;
};

}  // namespace natagg::aggregator::io
