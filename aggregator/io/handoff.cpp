// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/handoff.hpp"

#include <stdexcept>
#include <utility>

#include "aggregator/io/eal.hpp"

namespace natagg::aggregator::io {

MbufRing::MbufRing(const std::string& name, int socket)
    : ring_(rte_ring_create(name.c_str(), kRingSize, socket, RING_F_SC_DEQ)) {
  if (ring_ == nullptr) throw std::runtime_error(describe_failure("rte_ring_create", name));
}

MbufRing::~MbufRing() {
  std::array<rte_mbuf*, kBurst> mbufs;
  while (const unsigned count = take(mbufs)) rte_pktmbuf_free_bulk(mbufs.data(), count);
  rte_ring_free(ring_);
}

unsigned MbufRing::put(rte_mbuf** mbufs, unsigned count) {
  const unsigned fitted =
      rte_ring_enqueue_burst(ring_, reinterpret_cast<void**>(mbufs), count, nullptr);
  if (fitted < count) rte_pktmbuf_free_bulk(mbufs + fitted, count - fitted);
  return fitted;
}

unsigned MbufRing::take(std::array<rte_mbuf*, kBurst>& mbufs) {
  return rte_ring_dequeue_burst(ring_, reinterpret_cast<void**>(mbufs.data()), kBurst, nullptr);
}

HandoffSender::HandoffSender(std::vector<std::shared_ptr<MbufRing>> inboxes, IoCounters& counters)
    : inboxes_(std::move(inboxes)), batches_(inboxes_.size()), counters_(counters) {}

void HandoffSender::give(std::uint16_t shard, rte_mbuf* datagram) {
  Batch& batch = batches_[shard];
  batch.mbufs[batch.count++] = datagram;
  if (batch.count == kBurst) flush(shard);
}

void HandoffSender::flush() {
  for (std::size_t shard = 0; shard < batches_.size(); ++shard) {
    if (batches_[shard].count != 0) flush(shard);
  }
}

void HandoffSender::flush(std::size_t shard) {
  Batch& batch = batches_[shard];
  const unsigned fitted = inboxes_[shard]->put(batch.mbufs.data(), batch.count);
  counters_.add(IoCounter::kRxHandedOver, fitted);
  counters_.add(IoCounter::kDropHandoffFull, batch.count - fitted);
  batch.count = 0;
}

}  // namespace natagg::aggregator::io
