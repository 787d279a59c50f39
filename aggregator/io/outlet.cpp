// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/outlet.hpp"

#include <rte_ethdev.h>

#include <numeric>
#include <utility>

namespace natagg::aggregator::io {
namespace {

/// Calls of a device that does not take all at once; the protocol repeats what is dropped then.
constexpr unsigned kMaxRetries = 16;

}  // namespace

Outlet::Outlet(PortAccess access, IoCounters& counters)
    : access_(std::move(access)), counters_(counters) {}

Outlet::~Outlet() {
  rte_pktmbuf_free_bulk(pending_.data(), count_);
}

unsigned Outlet::relay() {
  if (!access_.queue || !access_.outbox) return 0;
  std::array<rte_mbuf*, kBurst> frames;
  const unsigned count = access_.outbox->take(frames);
  for (unsigned i = 0; i < count; ++i) put(frames[i]);
  return count;
}

void Outlet::flush() {
  if (count_ == 0) return;
  if (access_.queue) {
    flush_to_device(*access_.queue);
  } else {
    const unsigned fitted = access_.outbox->put(pending_.data(), count_);
    counters_.add(IoCounter::kTxRelayed, fitted);
    counters_.add(IoCounter::kTxDropRelayFull, count_ - fitted);
  }
  count_ = 0;
}

void Outlet::flush_to_device(std::uint16_t queue) {
  // The device owns what it has taken, so lengths are summed first and the rest's taken off.
  const auto bytes = [&](std::uint16_t from) {
    return std::accumulate(pending_.begin() + from, pending_.begin() + count_, std::uint64_t{0},
                           [](std::uint64_t sum, const rte_mbuf* m) { return sum + m->pkt_len; });
  };
  const std::uint64_t all = bytes(0);
  std::uint16_t sent = rte_eth_tx_burst(port().id(), queue, pending_.data(), count_);
  for (unsigned retry = 0; sent < count_ && retry < kMaxRetries; ++retry) {
    counters_.add(IoCounter::kTxRetries);
    sent = static_cast<std::uint16_t>(sent +
                                      rte_eth_tx_burst(port().id(), queue, pending_.data() + sent,
                                                       static_cast<std::uint16_t>(count_ - sent)));
  }
  const unsigned left = count_ - sent;
  counters_.add(IoCounter::kTxFrames, sent);
  counters_.add(IoCounter::kTxBytes, all - bytes(sent));
  counters_.add(IoCounter::kTxDropFull, left);
  if (left != 0) rte_pktmbuf_free_bulk(pending_.data() + sent, left);
}

}  // namespace natagg::aggregator::io
