// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/rank_network.hpp"

#include <random>
#include <stdexcept>

#include "tools/trace/carrier_network.hpp"
#include "tools/trace/socket_network.hpp"
#include "worker_lib/options.hpp"

namespace natagg::tools {

std::unique_ptr<RankNetwork> make_network(const NetworkOptions& options,
                                          const proto::Endpoint& aggregator) {
  const std::string aggregators = proto::to_string(aggregator);
  natagg_options worker = worker::default_options();
  worker.aggregators = aggregators.c_str();
  worker.transport = options.transport.c_str();
  worker.local = options.local.c_str();
  worker.eal = options.eal.c_str();
  const worker::WorkerConfig config = worker::make_config(worker);
  if (!config.memif && !config.ethdev) return std::make_unique<SocketNetwork>(config.udp.local);
  std::random_device random;
  return std::make_unique<CarrierNetwork>(
      worker::make_carrier(config, std::uint64_t{random()} << 32 | random()));
}

}  // namespace natagg::tools
