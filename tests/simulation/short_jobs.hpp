// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Jobs of a few short all-reduces, several of which share aggregators.
#pragma once

#include <string>
#include <vector>

#include "simulation/play.hpp"

namespace natagg::simulation {

/// A job of `ranks`, on a network that may do some harm.
[[nodiscard]] Scenario draw_job(Random& random, std::uint64_t seed, std::size_t ranks);

/// Everybody leaves, and nothing stays. Appends what is wrong to `violations`.
void close_all(World& world, std::vector<std::string>& violations);

void append(std::vector<std::string>& to, const std::vector<std::string>& from);

/// Gives `job` what it shares with all jobs of `world`: network, aggregators, whether there are
/// keys.
void share_world(const Scenario& world, Scenario& job);

}  // namespace natagg::simulation
