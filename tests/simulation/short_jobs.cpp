// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/short_jobs.hpp"

namespace natagg::simulation {
namespace {

constexpr Time kCloseLimit = 4 * kSecond;

}  // namespace

Scenario draw_job(Random& random, std::uint64_t seed, std::size_t ranks) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.network.delay = random.pick({50, 300}) * kMicrosecond;
  scenario.network.loss = random.pick({0.0, 0.0, 0.02});
  scenario.network.duplication = random.pick({0.0, 0.02});
  scenario.network.reordering = random.pick({0.0, 0.02});
  scenario.aggregators = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.multicast = random.chance(0.5);
  scenario.authenticated = random.chance(0.2);
  scenario.one_at_a_time = random.chance(0.5);
  scenario.operations.resize(static_cast<std::size_t>(random.between(2, 5)));
  for (OperationPlan& operation : scenario.operations) {
    operation.length = random.pick<std::uint64_t>({1, 700, 1'409, 9'000, 20'000});
    operation.in_place = random.chance(0.5);
  }
  scenario.workers.resize(ranks);
  const auto window = random.pick<std::uint16_t>({1, 4, 64});
  const Time interval = random.pick({0, 1, 20}) * kMillisecond;
  for (WorkerPlan& worker : scenario.workers) {
    worker.window = window;
    worker.start = random.between(0, 20) * kMillisecond;
    Time time = worker.start;
    for (std::size_t i = 0; i < scenario.operations.size(); ++i) {
      worker.submit_at.push_back(time += random.between(0, interval));
    }
  }
  draw_lanes(scenario);
  return scenario;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void share_world(const Scenario& world, Scenario& job) {
  job.network = world.network;
  job.aggregators = world.aggregators;
  job.shards = world.shards;
  job.multicast = world.multicast;
  job.authenticated = world.authenticated;
}

void close_all(World& world, std::vector<std::string>& violations) {
  for (WorkerHost& host : world.workers()) host.close_when_done();
  const auto over = [&] { return world.workers_closed() && world.aggregators_idle(); };
  if (!world.run_until(over, world.now() + kCloseLimit)) {
    violations.emplace_back("something is left behind at the end");
  }
  append(violations, world.violations());
}

}  // namespace natagg::simulation
