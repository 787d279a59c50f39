// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One lcore, with its shard and, where devices have enough, its queue of each. Shares nothing with
// other lcores but the hand-off rings.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "aggregator/io/clock.hpp"
#include "aggregator/io/frame.hpp"
#include "aggregator/io/handoff.hpp"
#include "aggregator/io/idle.hpp"
#include "aggregator/io/interrupt_gate.hpp"
#include "aggregator/io/io_counters.hpp"
#include "aggregator/io/port_access.hpp"
#include "aggregator/io/published.hpp"
#include "aggregator/io/transmit.hpp"

namespace natagg::aggregator::io {

struct LcoreConfig {
  ShardConfig shard;
  std::vector<PortAccess> ports;                   // by the port's number
  std::vector<std::shared_ptr<MbufRing>> inboxes;  // of all shards; empty when there is only one
  InterruptGate* gate = nullptr;                   // where a device needs one
  bool polite = false;
  double loss_rx = 0;
  double loss_tx = 0;
  std::uint64_t loss_seed = 0;
};

class Lcore {
 public:
  Lcore(const Pools& pools, const LcoreConfig& config);

  /// On the lcore's own thread, until `stop`.
  void run(const std::atomic<bool>& stop);

  /// Any thread may ask for a gratuitous ARP, to be sent soon.
  void announce() { announce_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] const Published& published() const { return published_; }

 private:
  unsigned work();
  unsigned receive(const PortAccess& access);
  unsigned take_over();
  void handle(rte_mbuf* mbuf, const Host& self);
  void reply(rte_mbuf* mbuf, std::size_t length, const Host& self);
  void hand_over(rte_mbuf* mbuf, const Frame& frame);
  void deliver(std::span<const std::byte> datagram, const Peer& source, bool congested);
  void keep_house();
  bool rest(unsigned work);
  void publish();

  const LcoreConfig config_;
  std::vector<PortAccess> polled_;  // of config_.ports, those with a queue
  IoCounters counters_;
  Shard shard_;
  HandoffSender handoff_;
  Transmitter transmitter_;
  proto::Loss loss_;
  Idle idle_;
  Clock clock_;
  Time now_ = 0;
  Time last_tick_ = 0;
  std::atomic<bool> announce_ = false;
  Published published_;
};

}  // namespace natagg::aggregator::io
