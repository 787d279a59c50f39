// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/steering.hpp"

#include <rte_byteorder.h>
#include <rte_flow.h>
#include <spdlog/spdlog.h>

namespace natagg::aggregator::io {
namespace {

/// Validates, then creates. Null, or the driver's reason.
const char* steer_one(std::uint16_t port, std::uint16_t udp_port, std::uint16_t queue) {
  rte_flow_attr attributes{};
  attributes.ingress = 1;
  rte_flow_item_udp udp{};
  udp.hdr.dst_port = rte_cpu_to_be_16(udp_port);
  rte_flow_item_udp mask{};
  mask.hdr.dst_port = UINT16_MAX;
  const rte_flow_item pattern[] = {
      {.type = RTE_FLOW_ITEM_TYPE_ETH, .spec = nullptr, .last = nullptr, .mask = nullptr},
      {.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = nullptr, .last = nullptr, .mask = nullptr},
      {.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .last = nullptr, .mask = &mask},
      {.type = RTE_FLOW_ITEM_TYPE_END, .spec = nullptr, .last = nullptr, .mask = nullptr},
  };
  const rte_flow_action_queue target{.index = queue};
  const rte_flow_action actions[] = {
      {.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &target},
      {.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr},
  };
  rte_flow_error error{};
  if (rte_flow_validate(port, &attributes, pattern, actions, &error) == 0 &&
      rte_flow_create(port, &attributes, pattern, actions, &error) != nullptr) {
    return nullptr;
  }
  return error.message != nullptr ? error.message : "no reason given";
}

}  // namespace

void steer_ports(std::uint16_t port, const std::string& name, std::uint16_t first_port,
                 std::uint16_t shards, std::uint16_t queues) {
  if (queues == 1) {
    if (shards > 1) {
      spdlog::warn("port {}: one queue for {} shards; frames are handed over in software", name,
                   shards);
    }
    return;
  }
  for (std::uint16_t shard = 0; shard < shards; ++shard) {
    const char* reason = steer_one(port, static_cast<std::uint16_t>(first_port + shard),
                                   static_cast<std::uint16_t>(shard % queues));
    if (reason == nullptr) continue;
    rte_flow_error ignored{};
    rte_flow_flush(port, &ignored);
    spdlog::warn("port {}: does not steer by UDP port ({}); frames are handed over in software",
                 name, reason);
    return;
  }
}

}  // namespace natagg::aggregator::io
