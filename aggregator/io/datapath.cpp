// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/datapath.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <spdlog/spdlog.h>

#include <random>
#include <utility>

#include "aggregator/io/steering.hpp"
#include "aggregator/ipv4_text.hpp"
#include "aggregator/shard_config.hpp"
#include "keys/key_file.hpp"
#include "proto/endpoint.hpp"

namespace natagg::aggregator::io {
namespace {

std::vector<unsigned> lcore_ids() {
  std::vector<unsigned> ids;
  for (unsigned id = rte_get_next_lcore(~0U, 0, 0); id < RTE_MAX_LCORE;
       id = rte_get_next_lcore(id, 0, 0)) {
    ids.push_back(id);
  }
  return ids;
}

std::vector<std::shared_ptr<MbufRing>> make_rings(const char* name, std::size_t count, int socket) {
  std::vector<std::shared_ptr<MbufRing>> rings;
  for (std::size_t i = 0; i < count; ++i) {
    rings.push_back(std::make_shared<MbufRing>(fmt::format("natagg-{}-{}", name, i), socket));
  }
  return rings;
}

void warn_of_distance(const Port& port, const std::vector<unsigned>& ids) {
  for (unsigned id : ids) {
    const int node = static_cast<int>(rte_lcore_to_socket_id(id));
    if (port.socket() >= 0 && port.socket() != node) {
      spdlog::warn("lcore {} is on NUMA node {}, the port on {}: choose others with -l", id, node,
                   port.socket());
    }
  }
}

}  // namespace

Datapath::Datapath(const Options& options, const Port& port, unsigned lcores,
                   std::shared_ptr<const proto::JobKeys> keys)
    : port_(port) {
  const auto shards = static_cast<std::uint16_t>(lcores);
  const std::uint32_t epoch = std::random_device{}() | 1;  // 0 means none
  const Host self{.mac = port.mac(),
                  .address = parse_ipv4(options.address).value_or(0),
                  .first_port = static_cast<std::uint16_t>(options.port),
                  .ports = shards,
                  .accepts_partial_checksums = port.partial_checksums()};
  ShardConfig first = shard_config(options, 0, shards, port.mtu(), epoch);
  first.keys = std::move(keys);
  first.entropy = keys::random_secret();
  steer_ports(port.id(), port.name(), self.first_port, shards, port.queues());
  const std::vector<unsigned> ids = lcore_ids();
  warn_of_distance(port, ids);

  const auto inboxes = make_rings("inbox", shards > 1 ? shards : 0U, port.socket());
  const bool relays = shards > port.queues();
  const auto outboxes = make_rings("outbox", relays ? port.queues() : 0U, port.socket());
  for (std::uint16_t shard = 0; shard < shards; ++shard) {
    LcoreConfig config{.shard = first,
                       .self = self,
                       .queue = std::nullopt,
                       .inboxes = inboxes,
                       .outbox = relays ? outboxes[shard % port.queues()] : nullptr,
                       .polite = options.idle == "polite",
                       .loss_rx = options.inject_loss_rx,
                       .loss_tx = options.inject_loss_tx,
                       .loss_seed = std::uint64_t{options.inject_seed} << 16 | shard};
    config.shard.index = shard;
    if (shard < port.queues()) config.queue = shard;
    launches_.push_back({ids[shard], std::make_unique<Lcore>(port, config), &stop_});
  }
  announce();
  ready_text_ = fmt::format(
      "{}-{}, {} {}, {} mtu {}, {} values a packet, kernels {}, multicast {}, idle {}",
      proto::to_string(proto::Endpoint{self.address, self.first_port}),
      self.first_port + shards - 1, shards, shards == 1 ? "shard" : "shards", port.name(),
      port.mtu(), first.max_values, first.kernels->name, options.multicast, options.idle);
}

Datapath::~Datapath() {
  stop();
  rte_eal_mp_wait_lcore();
}

int Datapath::run_lcore(void* launch) {
  const auto* mine = static_cast<const Launch*>(launch);
  mine->lcore->run(*mine->stop);
  return 0;
}

void Datapath::start() {
  for (Launch& launch : launches_) {
    if (launch.id != rte_get_main_lcore()) rte_eal_remote_launch(run_lcore, &launch, launch.id);
  }
}

void Datapath::run() {
  for (Launch& launch : launches_) {
    if (launch.id == rte_get_main_lcore()) run_lcore(&launch);
  }
  rte_eal_mp_wait_lcore();
}

std::string Datapath::ready_text() const {
  return ready_text_;
}

std::vector<CounterRow> Datapath::counters() const {
  std::vector<CounterRow> rows;
  for (std::size_t i = 0; i < Published::kSize; ++i) {
    CounterRow row{.name = std::string{Published::name(i)}, .values = {}};
    for (const Launch& launch : launches_) row.values.push_back(launch.lcore->published()[i]);
    rows.push_back(std::move(row));
  }
  rte_eth_stats stats{};
  if (rte_eth_stats_get(port_.id(), &stats) == 0) {
    rows.push_back({"device_rx_missed", {stats.imissed}});
    rows.push_back({"device_rx_errors", {stats.ierrors}});
    rows.push_back({"device_rx_no_buffer", {stats.rx_nombuf}});
    rows.push_back({"device_tx_errors", {stats.oerrors}});
  }
  return rows;
}

}  // namespace natagg::aggregator::io
