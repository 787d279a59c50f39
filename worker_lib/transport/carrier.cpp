// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/carrier.hpp"

#include <utility>

#include "proto/packet.hpp"
#include "worker_lib/transport/ethdev.hpp"
#include "worker_lib/transport/receive_budget.hpp"

namespace natagg::worker {
namespace {

/// Shards an aggregator is thought to have when the receive buffer is asked for; how many it has
/// is known only later, and asking for too much costs nothing.
constexpr std::size_t kAssumedShards = 4;

/// The datagram size that buffers are laid out for.
std::size_t largest_datagram(const StreamConfig& config, std::size_t mtu) {
  const std::size_t values = config.values != 0 ? config.values : proto::values_for_mtu(mtu);
  return proto::datagram_size(values);
}

Carrier make_udp(const WorkerConfig& config) {
  auto udp = std::make_unique<UdpTransport>(config.udp);
  Carrier carrier;
  carrier.local = udp->local();
  carrier.mtu = udp->mtu();
  const StreamConfig& stream = config.stream;
  const std::size_t datagram = largest_datagram(stream, carrier.mtu);
  const std::size_t window = stream.window * stream.aggregators.size() * kAssumedShards;
  carrier.receive_buffer_bytes =
      udp->reserve_buffers(config.receive_buffer_bytes != 0 ? config.receive_buffer_bytes
                                                            : buffer_for(window, datagram));
  carrier.segmentation = udp->segments();
  carrier.in_flight = packets_that_fit(carrier.receive_buffer_bytes, datagram);
  carrier.transport = std::move(udp);
  return carrier;
}

Carrier make_memif(MemifConfig config, std::uint64_t identity) {
  config.identity = identity;
  auto memif = std::make_unique<MemifTransport>(config);
  const proto::Endpoint local = memif->local();
  return {.transport = std::move(memif),
          .local = local,
          .mtu = MemifTransport::kMtu,
          .in_flight = MemifTransport::kInFlight,
          .receive_buffer_bytes = MemifTransport::kReceiveBytes};
}

}  // namespace

Carrier make_carrier(const WorkerConfig& config, std::uint64_t identity) {
  if (config.memif) return make_memif(*config.memif, identity);
  if (!config.ethdev) return make_udp(config);
  EthdevConfig ethdev = *config.ethdev;
  ethdev.identity = identity;
  return make_ethdev(ethdev);
}

}  // namespace natagg::worker
