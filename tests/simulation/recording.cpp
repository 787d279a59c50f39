// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/recording.hpp"

#include <algorithm>

namespace natagg::simulation {

Recorder::Recorder(World& world, const Recording& recording) {
  if (recording.trace_path.empty()) return;
  writer_.emplace(recording.trace_path);
  const auto at_aggregator = [&world](const proto::Endpoint& endpoint) {
    return std::ranges::any_of(world.aggregators(),
                               [&](const AggregatorHost& host) { return host.owns(endpoint); });
  };
  const auto write = [this](Time now, const proto::Endpoint& from, const proto::Endpoint& to,
                            std::span<const std::byte> datagram) {
    writer_->write(now, from, to, datagram);
  };
  world.network().add_tap({.at = at_aggregator, .see = write});
}

void Recorder::close() {
  if (writer_) writer_->close();
}

}  // namespace natagg::simulation
