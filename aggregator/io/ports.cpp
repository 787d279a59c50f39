// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/ports.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <stdexcept>

namespace natagg::aggregator::io {

namespace {

/// Devices that belong to another, such as those of a bond, have an owner.
std::optional<std::uint16_t> next_device(unsigned from) {
  const std::uint64_t id =
      rte_eth_find_next_owned_by(static_cast<std::uint16_t>(from), RTE_ETH_DEV_NO_OWNER);
  if (id >= RTE_MAX_ETHPORTS) return std::nullopt;
  return static_cast<std::uint16_t>(id);
}

}  // namespace

Ports::Ports(std::uint32_t mtu, unsigned lcores) {
  for (auto id = next_device(0); id; id = next_device(*id + 1U)) {
    ports_.emplace_back(*id, static_cast<std::uint16_t>(ports_.size()), mtu, lcores);
  }
  if (ports_.empty()) {
    throw std::runtime_error(
        "no network device: give EAL one with -a PCI-ADDRESS or --vdev, and see above whether its "
        "driver refused it");
  }
  PoolNeeds needs{.lcores = lcores, .ports = static_cast<std::uint32_t>(ports_.size())};
  for (const Port& port : ports_) port.add_needs(needs);
  pools_ = std::make_unique<Pools>(needs, ports_.front().socket());
  for (Port& port : ports_) port.start(*pools_);
  // Last: nothing here may fail while it works.
  if (std::ranges::any_of(ports_, &Port::shared_memory)) {
    gate_ = std::make_unique<InterruptGate>(lcores);
  }
}

/// A peer that leaves just now would otherwise have its memory taken away by two threads.
Ports::~Ports() {
  if (gate_) gate_->hold();
}

std::uint32_t Ports::mtu() const {
  return std::ranges::max(ports_ | std::views::transform(&Port::mtu));
}

}  // namespace natagg::aggregator::io
