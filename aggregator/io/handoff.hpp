// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Rings between lcores. Where the device cannot give every shard its own queue, an lcore that
// receives a datagram for another's shard puts it into that one's inbox, and an lcore without a
// queue sends through the outbox of one that has one. Either way a queue has one lcore.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/io/io_counters.hpp"
#include "aggregator/io/pools.hpp"

namespace natagg::aggregator::io {

/// A ring of mbufs with many producers and one consumer.
class MbufRing {
 public:
  /// Throws std::runtime_error when there is no memory.
  MbufRing(const std::string& name, int socket);
  ~MbufRing();
  MbufRing(const MbufRing&) = delete;
  MbufRing& operator=(const MbufRing&) = delete;

  /// Takes as many as fit and frees the rest. Returns how many fitted.
  unsigned put(rte_mbuf** mbufs, unsigned count);
  unsigned take(std::array<rte_mbuf*, kBurst>& mbufs);

 private:
  rte_ring* ring_;
};

/// One lcore's end of the inboxes of all others: collects a turn's datagrams, so that a ring is
/// touched once a turn rather than once a packet.
class HandoffSender {
 public:
  /// `inboxes` by shard.
  HandoffSender(std::vector<std::shared_ptr<MbufRing>> inboxes, IoCounters& counters);

  void give(std::uint16_t shard, rte_mbuf* datagram);
  void flush();

 private:
  struct Batch {
    std::array<rte_mbuf*, kBurst> mbufs;
    std::uint16_t count = 0;
  };
  void flush(std::size_t shard);

  std::vector<std::shared_ptr<MbufRing>> inboxes_;
  std::vector<Batch> batches_;
  IoCounters& counters_;
};

}  // namespace natagg::aggregator::io
