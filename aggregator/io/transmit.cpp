// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/transmit.hpp"

#include <rte_ethdev.h>

#include <cstring>
#include <numeric>
#include <utility>

#include "aggregator/io/checksum.hpp"

namespace natagg::aggregator::io {
namespace {

/// Calls of a device that does not take all at once; the protocol repeats what is dropped then.
constexpr unsigned kMaxRetries = 16;

std::size_t payload_length(const Outgoing& datagram) {
  return datagram.head.size() + datagram.body.size() + datagram.padding + datagram.tail.size();
}

/// Zero padding adds nothing.
std::uint16_t payload_sum(const Outgoing& datagram) {
  const std::uint16_t sum = ones_append(ones_sum(datagram.head), datagram.head.size(),
                                        ones_sum(std::as_bytes(datagram.body)));
  if (datagram.tail.empty()) return sum;
  return ones_append(sum, payload_length(datagram) - datagram.tail.size(), ones_sum(datagram.tail));
}

void copy_payload(const Outgoing& datagram, char* out) {
  std::memcpy(out, datagram.head.data(), datagram.head.size());
  out += datagram.head.size();
  if (!datagram.body.empty()) std::memcpy(out, datagram.body.data(), datagram.body.size());
  out += datagram.body.size();
  std::memset(out, 0, datagram.padding);
  if (!datagram.tail.empty()) {
    std::memcpy(out + datagram.padding, datagram.tail.data(), datagram.tail.size());
  }
}

}  // namespace

Transmitter::Transmitter(const Port& port, TransmitConfig config, IoCounters& counters)
    : port_(port),
      config_(std::move(config)),
      offload_(port.tx_offload()),
      counters_(counters),
      loss_(config_.loss, config_.loss_seed) {}

Transmitter::~Transmitter() {
  rte_pktmbuf_free_bulk(pending_.data(), count_);
}

void Transmitter::send(const Outgoing& datagram) {
  const std::size_t length = payload_length(datagram);
  if (length + proto::kIpUdpBytes > port_.mtu()) {
    counters_.add(IoCounter::kTxDropTooLong, datagram.to.size());
    return;
  }
  const Payload payload{.length = static_cast<std::uint16_t>(length),
                        .sum = offload_.udp_checksum ? std::uint16_t{0} : payload_sum(datagram)};
  // One copy of the payload for all, where the device gathers a frame from two buffers.
  rte_mbuf* shared = nullptr;
  if (port_.tx_chains() && datagram.to.size() > 1) shared = make_payload(datagram);
  for (const Peer& to : datagram.to) {
    if (loss_.draw()) {
      counters_.add(IoCounter::kTxDropInjected);
    } else if (shared != nullptr) {
      send_chained(shared, to, payload);
    } else {
      send_linear(datagram, to, payload);
    }
  }
  rte_pktmbuf_free(shared);
}

rte_mbuf* Transmitter::make_payload(const Outgoing& datagram) {
  rte_mbuf* mbuf = rte_pktmbuf_alloc(port_.pools().frames());
  if (mbuf == nullptr) return nullptr;
  copy_payload(datagram,
               rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(payload_length(datagram))));
  return mbuf;
}

void Transmitter::send_linear(const Outgoing& datagram, const Peer& to, Payload payload) {
  rte_mbuf* frame = rte_pktmbuf_alloc(port_.pools().frames());
  if (frame == nullptr) return counters_.add(IoCounter::kTxDropNoBuffer);
  const Envelope envelope = make_envelope(config_.self, config_.source_port, to, payload, offload_);
  char* out =
      rte_pktmbuf_append(frame, static_cast<std::uint16_t>(envelope.length + payload.length));
  std::memcpy(out, envelope.bytes.data(), envelope.length);
  copy_payload(datagram, out + envelope.length);
  mark_offloads(frame, envelope);
  send_frame(frame);
}

void Transmitter::send_chained(rte_mbuf* shared, const Peer& to, Payload payload) {
  rte_mbuf* frame = rte_pktmbuf_alloc(port_.pools().headers());
  if (frame == nullptr) return counters_.add(IoCounter::kTxDropNoBuffer);
  const Envelope envelope = make_envelope(config_.self, config_.source_port, to, payload, offload_);
  std::memcpy(rte_pktmbuf_append(frame, envelope.length), envelope.bytes.data(), envelope.length);
  rte_mbuf_refcnt_update(shared, 1);  // freed with the frame, by whichever lcore does that
  frame->next = shared;
  frame->nb_segs = 2;
  frame->pkt_len += shared->pkt_len;
  mark_offloads(frame, envelope);
  send_frame(frame);
}

void Transmitter::mark_offloads(rte_mbuf* frame, const Envelope& envelope) const {
  if (!offload_.ip_checksum && !offload_.udp_checksum) return;
  frame->tx_offload = rte_mbuf_tx_offload(envelope.link_length, sizeof(Ipv4Header), 0, 0, 0, 0, 0);
  frame->ol_flags |= RTE_MBUF_F_TX_IPV4;
  if (offload_.ip_checksum) frame->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
  if (offload_.udp_checksum) frame->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM;
}

void Transmitter::send_frame(rte_mbuf* frame) {
  pending_[count_++] = frame;
  if (count_ == kBurst) flush();
}

void Transmitter::send_copy(std::span<const std::byte> frame) {
  rte_mbuf* mbuf = rte_pktmbuf_alloc(port_.pools().frames());
  if (mbuf == nullptr) return counters_.add(IoCounter::kTxDropNoBuffer);
  std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size())), frame.data(),
              frame.size());
  send_frame(mbuf);
}

unsigned Transmitter::relay() {
  if (!config_.queue || !config_.outbox) return 0;
  std::array<rte_mbuf*, kBurst> frames;
  const unsigned count = config_.outbox->take(frames);
  for (unsigned i = 0; i < count; ++i) send_frame(frames[i]);
  return count;
}

void Transmitter::flush() {
  if (count_ == 0) return;
  if (config_.queue) {
    flush_to_device(*config_.queue);
  } else {
    const unsigned fitted = config_.outbox->put(pending_.data(), count_);
    counters_.add(IoCounter::kTxRelayed, fitted);
    counters_.add(IoCounter::kTxDropRelayFull, count_ - fitted);
  }
  count_ = 0;
}

void Transmitter::flush_to_device(std::uint16_t queue) {
  // The device owns what it has taken, so lengths are summed first and the rest's taken off.
  const auto bytes = [&](std::uint16_t from) {
    return std::accumulate(pending_.begin() + from, pending_.begin() + count_, std::uint64_t{0},
                           [](std::uint64_t sum, const rte_mbuf* m) { return sum + m->pkt_len; });
  };
  const std::uint64_t all = bytes(0);
  std::uint16_t sent = rte_eth_tx_burst(port_.id(), queue, pending_.data(), count_);
  for (unsigned retry = 0; sent < count_ && retry < kMaxRetries; ++retry) {
    counters_.add(IoCounter::kTxRetries);
    sent = static_cast<std::uint16_t>(sent +
                                      rte_eth_tx_burst(port_.id(), queue, pending_.data() + sent,
                                                       static_cast<std::uint16_t>(count_ - sent)));
  }
  const unsigned left = count_ - sent;
  counters_.add(IoCounter::kTxFrames, sent);
  counters_.add(IoCounter::kTxBytes, all - bytes(sent));
  counters_.add(IoCounter::kTxDropFull, left);
  if (left != 0) rte_pktmbuf_free_bulk(pending_.data() + sent, left);
}

}  // namespace natagg::aggregator::io
