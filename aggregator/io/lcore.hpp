// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One lcore, with its shard and, where the device has enough, its queue. Shares nothing with other
// lcores but the hand-off rings.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "aggregator/io/clock.hpp"
#include "aggregator/io/frame.hpp"
#include "aggregator/io/handoff.hpp"
#include "aggregator/io/idle.hpp"
#include "aggregator/io/io_counters.hpp"
#include "aggregator/io/port.hpp"
#include "aggregator/io/published.hpp"
#include "aggregator/io/transmit.hpp"

namespace natagg::aggregator::io {

struct LcoreConfig {
  ShardConfig shard;
  Host self;
  std::optional<std::uint16_t> queue;
  std::vector<std::shared_ptr<MbufRing>> inboxes;  // of all shards; empty when there is only one
  std::shared_ptr<MbufRing> outbox;                // of the lcore whose queue this one uses
  bool polite = false;
  double loss_rx = 0;
  double loss_tx = 0;
  std::uint64_t loss_seed = 0;
};

class Lcore {
 public:
  Lcore(const Port& port, const LcoreConfig& config);

  /// On the lcore's own thread, until `stop`.
  void run(const std::atomic<bool>& stop);

  /// Any thread may ask for a gratuitous ARP, to be sent soon.
  void announce() { announce_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] const Published& published() const { return published_; }

 private:
  unsigned receive();
  unsigned take_over();
  void handle(rte_mbuf* mbuf);
  void reply(rte_mbuf* mbuf, std::size_t length);
  void hand_over(rte_mbuf* mbuf, const Frame& frame);
  void deliver(std::span<const std::byte> datagram, const Peer& source);
  void keep_house();
  void publish();

  const Port& port_;
  const LcoreConfig config_;
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
