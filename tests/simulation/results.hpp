// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Judges what a scenario's ranks hold when their operations have ended.
#pragma once

#include <string>
#include <vector>

#include "simulation/answers.hpp"
#include "simulation/scenario.hpp"
#include "simulation/world.hpp"

namespace natagg::simulation {

/// What is wrong with the results of ranks first, first + 1, ... that play `scenario`: all that
/// ended well must hold the same bits, the reference's. Operations that ended with an error are
/// wrong unless they `may_fail`. Those that take partial results need `answers`: each chunk then
/// has the reference's bits over the ranks that one of its answers names.
[[nodiscard]] std::vector<std::string> check_results(World& world, const Scenario& scenario,
                                                     std::size_t first, bool may_fail = false,
                                                     const Answers* answers = nullptr);

}  // namespace natagg::simulation
