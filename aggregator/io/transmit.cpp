// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/transmit.hpp"

#include <cstring>

#include "proto/net/checksum.hpp"

namespace natagg::aggregator::io {
namespace {

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

void mark_offloads(rte_mbuf* frame, const Envelope& envelope, const Offload& offload) {
  if (!offload.ip_checksum && !offload.udp_checksum) return;
  frame->tx_offload = rte_mbuf_tx_offload(envelope.link_length, sizeof(Ipv4Header), 0, 0, 0, 0, 0);
  frame->ol_flags |= RTE_MBUF_F_TX_IPV4;
  if (offload.ip_checksum) frame->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
  if (offload.udp_checksum) frame->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM;
}

}  // namespace

Transmitter::Transmitter(const Pools& pools, const TransmitConfig& config, IoCounters& counters)
    : pools_(pools),
      source_port_(config.source_port),
      counters_(counters),
      loss_(config.loss, config.loss_seed) {
  for (const PortAccess& access : config.ports) {
    const Offload offload = access.port->tx_offload();
    sums_ |= !offload.udp_checksum && !offload.no_udp_checksum;
    chains_ |= access.port->tx_chains();
    outlets_.emplace_back(access, counters);
  }
}

void Transmitter::send(const Outgoing& datagram) {
  Parcel parcel{.datagram = datagram,
                .payload = {.length = static_cast<std::uint16_t>(payload_length(datagram)),
                            .sum = sums_ ? payload_sum(datagram) : std::uint16_t{0}}};
  if (chains_ && datagram.to.size() > 1) parcel.shared = make_payload(datagram);
  for (const Peer& to : datagram.to) {
    if (is_multicast(to.endpoint.address)) {
      send_to_group(parcel, to);
    } else {
      send_by(outlets_[to.interface], parcel, to);
    }
  }
  rte_pktmbuf_free(parcel.shared);
}

rte_mbuf* Transmitter::make_payload(const Outgoing& datagram) {
  rte_mbuf* mbuf = rte_pktmbuf_alloc(pools_.frames());
  if (mbuf == nullptr) return nullptr;
  copy_payload(datagram,
               rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(payload_length(datagram))));
  return mbuf;
}

/// Who is reached by shared memory alone does not hear the group's probe either.
void Transmitter::send_to_group(const Parcel& parcel, const Peer& group) {
  for (Outlet& outlet : outlets_) {
    if (!outlet.port().shared_memory()) send_by(outlet, parcel, group);
  }
}

void Transmitter::send_by(Outlet& outlet, const Parcel& parcel, const Peer& to) {
  const Port& port = outlet.port();
  if (parcel.payload.length + proto::kIpUdpBytes > port.mtu()) {
    return counters_.add(IoCounter::kTxDropTooLong);
  }
  if (loss_.draw()) return counters_.add(IoCounter::kTxDropInjected);
  const Envelope envelope =
      make_envelope(outlet.self(), source_port_, to, parcel.payload, port.tx_offload());
  if (parcel.shared != nullptr && port.tx_chains()) {
    send_chained(outlet, parcel, envelope);
  } else {
    send_linear(outlet, parcel, envelope);
  }
}

void Transmitter::send_linear(Outlet& outlet, const Parcel& parcel, const Envelope& envelope) {
  rte_mbuf* frame = rte_pktmbuf_alloc(pools_.frames());
  if (frame == nullptr) return counters_.add(IoCounter::kTxDropNoBuffer);
  char* out = rte_pktmbuf_append(
      frame, static_cast<std::uint16_t>(envelope.length + parcel.payload.length));
  std::memcpy(out, envelope.bytes.data(), envelope.length);
  copy_payload(parcel.datagram, out + envelope.length);
  mark_offloads(frame, envelope, outlet.port().tx_offload());
  outlet.put(frame);
}

void Transmitter::send_chained(Outlet& outlet, const Parcel& parcel, const Envelope& envelope) {
  rte_mbuf* frame = rte_pktmbuf_alloc(outlet.port().header_pool());
  if (frame == nullptr) return counters_.add(IoCounter::kTxDropNoBuffer);
  std::memcpy(rte_pktmbuf_append(frame, envelope.length), envelope.bytes.data(), envelope.length);
  rte_mbuf_refcnt_update(parcel.shared, 1);  // freed with the frame, by whichever lcore does that
  frame->next = parcel.shared;
  frame->nb_segs = 2;
  frame->pkt_len += parcel.shared->pkt_len;
  mark_offloads(frame, envelope, outlet.port().tx_offload());
  outlet.put(frame);
}

void Transmitter::send_copy(std::uint16_t port, std::span<const std::byte> frame) {
  rte_mbuf* mbuf = rte_pktmbuf_alloc(pools_.frames());
  if (mbuf == nullptr) return counters_.add(IoCounter::kTxDropNoBuffer);
  std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame.size())), frame.data(),
              frame.size());
  send_frame(port, mbuf);
}

unsigned Transmitter::relay() {
  unsigned count = 0;
  for (Outlet& outlet : outlets_) count += outlet.relay();
  return count;
}

void Transmitter::flush() {
  for (Outlet& outlet : outlets_) outlet.flush();
}

}  // namespace natagg::aggregator::io
