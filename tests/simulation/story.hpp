// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A fixture for what is told rather than drawn: a scenario, for each of some seeds, into which the
// test steps at moments of its choice.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulation/play.hpp"

namespace natagg::simulation {

class Story : public testing::TestWithParam<std::uint64_t> {
 protected:
  /// Makes `scenario` this story's, with its aggregators and no worker yet.
  World& begin(Scenario scenario) {
    scenario_ = std::move(scenario);
    world_.emplace(scenario_.network, scenario_.seed);
    add_aggregators(*world_, scenario_);
    return *world_;
  }

  /// The same with its workers, up to when all are ready.
  World& begin_ready(Scenario scenario) {
    begin(std::move(scenario));
    add_workers(*world_, scenario_);
    EXPECT_TRUE(
        run_until([&] { return std::ranges::all_of(world_->workers(), ready); }, 10 * kSecond));
    return *world_;
  }

  static bool ready(const WorkerHost& host) { return host.ready(); }

  /// False when `done` does not come true within `limit` from now.
  bool run_until(const std::function<bool()>& done, Time limit) {
    return world_->run_until(done, world_->now() + limit);
  }
  bool finish(Time limit) {
    return run_until([&] { return world_->workers_done(); }, limit);
  }

  static void expect_none(const std::vector<std::string>& violations) {
    for (const std::string& violation : violations) ADD_FAILURE() << violation;
  }

  /// The ranks of `scenario` from the world's worker `first` on have the right results.
  void expect_right(const Scenario& scenario, std::size_t first) {
    expect_none(check_results(*world_, scenario, first));
    expect_none(world_->violations());
  }

  Scenario scenario_;
  std::optional<World> world_;
};

}  // namespace natagg::simulation
