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

std::vector<std::shared_ptr<MbufRing>> make_rings(const std::string& name, std::size_t count,
                                                  int socket) {
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
      spdlog::warn("lcore {} is on NUMA node {}, port {} on {}: choose others with -l", id, node,
                   port.name(), port.socket());
    }
  }
}

/// Every lcore's way to `port`.
std::vector<PortAccess> make_access(const Port& port, const Host& self) {
  const bool relays = self.ports > port.queues();
  const auto outboxes = make_rings(fmt::format("outbox-{}", port.number()),
                                   relays ? port.queues() : 0U, port.socket());
  std::vector<PortAccess> access;
  for (std::uint16_t lcore = 0; lcore < self.ports; ++lcore) {
    access.push_back({.port = &port,
                      .self = self,
                      .queue = port.queue_of(lcore),
                      .outbox = relays ? outboxes[lcore % port.queues()] : nullptr});
  }
  return access;
}

}  // namespace

Datapath::Datapath(const Options& options, const Ports& ports, unsigned lcores,
                   std::shared_ptr<const proto::JobKeys> keys)
    : ports_(ports) {
  const auto shards = static_cast<std::uint16_t>(lcores);
  const std::uint32_t epoch = std::random_device{}() | 1;  // 0 means none
  ShardConfig first = shard_config(options, 0, shards, ports.mtu(), epoch);
  first.keys = std::move(keys);
  first.entropy = keys::random_secret();
  const std::vector<unsigned> ids = lcore_ids();
  std::vector<LcoreConfig> configs(shards);
  for (const Port& port : ports.all()) {
    const Host self{.mac = port.mac(),
                    .address = parse_ipv4(options.address).value_or(0),
                    .first_port = static_cast<std::uint16_t>(options.port),
                    .ports = shards,
                    .interface = port.number(),
                    .accepts_partial_checksums = port.partial_checksums()};
    steer_ports(port.id(), port.name(), self.first_port, shards, port.queues());
    warn_of_distance(port, ids);
    std::vector<PortAccess> access = make_access(port, self);
    for (std::size_t i = 0; i < shards; ++i) configs[i].ports.push_back(std::move(access[i]));
  }

  const auto inboxes = make_rings("inbox", shards > 1 ? shards : 0U, ports.all().front().socket());
  for (std::uint16_t shard = 0; shard < shards; ++shard) {
    LcoreConfig& config = configs[shard];
    config.shard = first;
    config.shard.index = shard;
    config.inboxes = inboxes;
    config.gate = ports.gate();
    config.polite = options.idle == "polite";
    config.loss_rx = options.inject_loss_rx;
    config.loss_tx = options.inject_loss_tx;
    config.loss_seed = std::uint64_t{options.inject_seed} << 16 | shard;
    launches_.push_back({ids[shard], std::make_unique<Lcore>(ports.pools(), config), &stop_});
  }
  announce();
  ready_text_ = describe(options, first);
}

std::string Datapath::describe(const Options& options, const ShardConfig& shard) const {
  std::vector<std::string> names;
  for (const Port& port : ports_.all()) {
    names.push_back(fmt::format("{} mtu {}", port.name(), port.mtu()));
  }
  return fmt::format("{}-{}, {} {}, {}, {} values a packet, kernels {}, multicast {}, idle {}",
                     proto::to_string(proto::Endpoint{parse_ipv4(options.address).value_or(0),
                                                      static_cast<std::uint16_t>(options.port)}),
                     options.port + shard.shards - 1, shard.shards,
                     shard.shards == 1 ? "shard" : "shards", fmt::join(names, ", "),
                     shard.max_values, shard.kernels->name, options.multicast, options.idle);
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
  rte_eth_stats sum{};
  for (const Port& port : ports_.all()) {
    rte_eth_stats stats{};
    if (rte_eth_stats_get(port.id(), &stats) != 0) continue;
    sum.imissed += stats.imissed;
    sum.ierrors += stats.ierrors;
    sum.rx_nombuf += stats.rx_nombuf;
    sum.oerrors += stats.oerrors;
  }
  rows.push_back({"device_rx_missed", {sum.imissed}});
  rows.push_back({"device_rx_errors", {sum.ierrors}});
  rows.push_back({"device_rx_no_buffer", {sum.rx_nombuf}});
  rows.push_back({"device_tx_errors", {sum.oerrors}});
  return rows;
}

}  // namespace natagg::aggregator::io
