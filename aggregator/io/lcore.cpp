// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/lcore.hpp"

#include <rte_ethdev.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "aggregator/io/arp.hpp"
#include "aggregator/io/icmp.hpp"

namespace natagg::aggregator::io {
namespace {

constexpr std::uint32_t kHousekeepingTurns = 256;
constexpr Time kTick = 10'000'000;
constexpr int kMaxTicks = 64;  // in one go, when a tick has something to send each time

Verified device_verdict(const rte_mbuf& mbuf) {
  // L4 "none" means: no checksum, but the data is known to be whole (a virtual machine's peer).
  const std::uint64_t ip = mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
  const std::uint64_t udp = mbuf.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
  return {.ip_checksum = ip == RTE_MBUF_F_RX_IP_CKSUM_GOOD,
          .udp_checksum = udp == RTE_MBUF_F_RX_L4_CKSUM_GOOD || udp == RTE_MBUF_F_RX_L4_CKSUM_NONE};
}

std::span<std::byte> bytes_of(rte_mbuf* mbuf) {
  return {rte_pktmbuf_mtod(mbuf, std::byte*), rte_pktmbuf_data_len(mbuf)};
}

}  // namespace

Lcore::Lcore(const Pools& pools, const LcoreConfig& config)
    : config_(config),
      shard_(config.shard),
      handoff_(config.inboxes, counters_),
      transmitter_(pools,
                   {.ports = config.ports,
                    .source_port = static_cast<std::uint16_t>(config.ports.front().self.first_port +
                                                              config.shard.index),
                    .loss = config.loss_tx,
                    .loss_seed = ~config.loss_seed},
                   counters_),
      loss_(config.loss_rx, config.loss_seed),
      idle_(config.polite) {
  std::ranges::copy_if(config.ports, std::back_inserter(polled_),
                       [](const PortAccess& access) { return access.queue.has_value(); });
}

void Lcore::run(const std::atomic<bool>& stop) {
  idle_.prepare_thread();
  bool rested = false;
  for (std::uint32_t turn = 0;; ++turn) {
    now_ = clock_.now();
    const bool housekeeping = rested || turn % kHousekeepingTurns == 0;
    if (housekeeping && stop.load(std::memory_order_relaxed)) break;
    unsigned done = 0;
    {
      const InterruptGate::Turn inside(config_.gate, config_.shard.index);
      if (housekeeping) keep_house();
      done = work();
    }
    rested = rest(done);
  }
  publish();
}

unsigned Lcore::work() {
  unsigned done = take_over() + transmitter_.relay();
  for (const PortAccess& access : polled_) done += receive(access);
  handoff_.flush();
  transmitter_.flush();
  return done;
}

unsigned Lcore::receive(const PortAccess& access) {
  std::array<rte_mbuf*, kBurst> mbufs;
  const unsigned count = rte_eth_rx_burst(access.port->id(), *access.queue, mbufs.data(), kBurst);
  for (unsigned i = 0; i < count; ++i) {
    if (i + 1 < count) rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 1], void*));
    handle(mbufs[i], access.self);
  }
  return count;
}

/// Takes the mbuf: it is sent, handed over or freed.
void Lcore::handle(rte_mbuf* mbuf, const Host& self) {
  counters_.add(IoCounter::kRxFrames);
  counters_.add(IoCounter::kRxBytes, mbuf->pkt_len);
  if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf) != 0) {
    counters_.add(IoCounter::kDropChained);
    return rte_pktmbuf_free(mbuf);
  }
  const std::span<std::byte> bytes = bytes_of(mbuf);
  const Frame frame = parse_frame(bytes, self, device_verdict(*mbuf));
  if (frame.verdict == IoCounter::kRxDatagrams) {
    if (frame.shard != config_.shard.index) return hand_over(mbuf, frame);
    deliver(bytes.subspan(frame.payload, frame.length), frame.source, frame.congested);
    return rte_pktmbuf_free(mbuf);
  }
  counters_.add(frame.verdict);
  if (frame.verdict == IoCounter::kRxArp) {
    return reply(mbuf, answer_arp(bytes, frame.network, self), self);
  }
  if (frame.verdict == IoCounter::kRxEcho) {
    return reply(mbuf, answer_echo(bytes, frame.network, self), self);
  }
  rte_pktmbuf_free(mbuf);
}

/// The received mbuf, rewritten, goes back where it came from.
void Lcore::reply(rte_mbuf* mbuf, std::size_t length, const Host& self) {
  mbuf->ol_flags = 0;
  mbuf->data_len = static_cast<std::uint16_t>(length);
  mbuf->pkt_len = static_cast<std::uint32_t>(length);
  transmitter_.send_frame(self.interface, mbuf);
}

void Lcore::hand_over(rte_mbuf* mbuf, const Frame& frame) {
  rte_pktmbuf_adj(mbuf, frame.payload);
  rte_pktmbuf_trim(mbuf, static_cast<std::uint16_t>(mbuf->data_len - frame.length));
  new (rte_mbuf_to_priv(mbuf)) HandedOver{frame.source, frame.congested};
  handoff_.give(frame.shard, mbuf);
}

/// What other lcores received for this one's shard.
unsigned Lcore::take_over() {
  if (config_.inboxes.empty()) return 0;
  std::array<rte_mbuf*, kBurst> mbufs;
  const unsigned count = config_.inboxes[config_.shard.index]->take(mbufs);
  for (unsigned i = 0; i < count; ++i) {
    const auto* handed = static_cast<const HandedOver*>(rte_mbuf_to_priv(mbufs[i]));
    deliver(bytes_of(mbufs[i]), handed->source, handed->congested);
    rte_pktmbuf_free(mbufs[i]);
  }
  return count;
}

void Lcore::deliver(std::span<const std::byte> datagram, const Peer& source, bool congested) {
  if (loss_.draw()) return counters_.add(IoCounter::kDropInjected);
  counters_.add(IoCounter::kRxDatagrams);
  for (const Outgoing& outgoing : shard_.receive(datagram, source, now_, congested)) {
    transmitter_.send(outgoing);
  }
}

void Lcore::keep_house() {
  if (announce_.load(std::memory_order_relaxed)) {
    announce_.store(false, std::memory_order_relaxed);
    for (const PortAccess& access : config_.ports) {
      transmitter_.send_copy(access.self.interface, arp_announcement(access.self));
    }
  }
  if (now_ - last_tick_ < kTick) return;
  last_tick_ = now_;
  for (int i = 0; i < kMaxTicks; ++i) {
    const std::span<const Outgoing> due = shard_.tick(now_);
    if (due.empty()) break;
    for (const Outgoing& outgoing : due) transmitter_.send(outgoing);
  }
  publish();
}

/// Whether it napped.
bool Lcore::rest(unsigned work) {
  const std::int64_t nap = idle_.next_nap(work);
  if (nap == 0) return false;
  counters_.add(IoCounter::kSleeps);
  Idle::sleep(nap);
  return true;
}

void Lcore::publish() {
  published_.publish(counters_, shard_.counters(), shard_.usage());
}

}  // namespace natagg::aggregator::io
