// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Sends what a shard gives out, and finished frames, each by the port that leads to its peer.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "aggregator/io/envelope.hpp"
#include "aggregator/io/io_counters.hpp"
#include "aggregator/io/outlet.hpp"
#include "aggregator/io/pools.hpp"
#include "proto/loss.hpp"

namespace natagg::aggregator::io {

struct TransmitConfig {
  std::vector<PortAccess> ports;  // by the port's number
  std::uint16_t source_port = 0;
  double loss = 0;
  std::uint64_t loss_seed = 0;
};

class Transmitter {
 public:
  Transmitter(const Pools& pools, const TransmitConfig& config, IoCounters& counters);
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  void send(const Outgoing& datagram);
  /// A whole frame, by the port of that number; takes the mbuf.
  void send_frame(std::uint16_t port, rte_mbuf* frame) { outlets_[port].put(frame); }
  void send_copy(std::uint16_t port, std::span<const std::byte> frame);
  /// Takes up what other lcores want sent by this one's queue. Returns how many frames.
  unsigned relay();
  /// Sends all that is left.
  void flush();

 private:
  /// One datagram on its way: its payload is made once.
  struct Parcel {
    const Outgoing& datagram;
    Payload payload;
    rte_mbuf* shared = nullptr;  // the payload, for all that can refer to it
  };
  rte_mbuf* make_payload(const Outgoing& datagram);
  void send_to_group(const Parcel& parcel, const Peer& group);
  void send_by(Outlet& outlet, const Parcel& parcel, const Peer& to);
  void send_linear(Outlet& outlet, const Parcel& parcel, const Envelope& envelope);
  void send_chained(Outlet& outlet, const Parcel& parcel, const Envelope& envelope);

  const Pools& pools_;
  const std::uint16_t source_port_;
  IoCounters& counters_;
  proto::Loss loss_;
  std::deque<Outlet> outlets_;  // by the port's number
  bool sums_ = false;           // some port wants UDP checksums computed
  bool chains_ = false;         // some port gathers a frame from two buffers
};

}  // namespace natagg::aggregator::io
