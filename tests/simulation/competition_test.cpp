// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Jobs that compete for room: drawn from seeds, as drawn_seeds.hpp says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulation/drawn_seeds.hpp"
#include "simulation/short_jobs.hpp"

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kOneIn = 250;
constexpr Time kDeadline = 15 * kSecond;

std::string play_competition(std::uint64_t seed) {
  Random random(seed);
  const auto max_jobs = static_cast<std::uint16_t>(random.between(1, 3));
  const auto jobs = static_cast<std::uint32_t>(random.between(2, 5));
  const auto max_workers = static_cast<std::uint16_t>(random.between(2, 3));
  Scenario first = draw_job(random, seed, 1);
  first.max_jobs = max_jobs;
  first.max_workers = max_workers;
  World world(first.network, seed);
  add_aggregators(world, first);
  std::vector<Scenario> scenarios;
  std::vector<std::size_t> begins;
  for (std::uint32_t job = 1; job <= jobs; ++job) {
    Scenario scenario = draw_job(random, seed + job, random.below(3) + 1);
    scenario.authenticated = first.authenticated;
    scenario.close_early = random.chance(0.5);
    scenario.connect_within = random.pick({2, 6}) * kSecond;
    begins.push_back(add_workers(world, scenario, job, job, kDeadline));
    scenarios.push_back(std::move(scenario));
  }
  std::vector<std::string> violations;
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + kDeadline)) {
    violations.emplace_back("not all is decided");
  }
  const std::string limit = "too many jobs: it takes " + std::to_string(max_jobs);
  std::size_t admitted = 0;
  std::size_t possible = 0;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const std::size_t ranks = scenarios[i].workers.size();
    const bool fits = ranks <= max_workers;
    std::size_t well = 0;
    std::size_t told = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const WorkerHost& host = world.worker(begins[i] + rank);
      const worker::Failure& failure = host.stream().failure();
      if (failure.status == NATAGG_OK) ++well;
      if (failure.message.find(fits ? limit : std::to_string(max_workers)) != std::string::npos) {
        ++told;
      }
    }
    possible += fits ? 1 : 0;
    admitted += well == ranks ? 1 : 0;
    if ((well != ranks || !fits) && (well != 0 || told != ranks)) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        violations.push_back("job " + std::to_string(i + 1) + ": " +
                             what_it_waits_for(world.worker(begins[i] + rank)));
      }
    } else if (well == ranks) {
      append(violations, check_results(world, scenarios[i], begins[i]));
    }
  }
  if (admitted < std::min<std::size_t>(possible, max_jobs)) {
    violations.push_back(std::to_string(admitted) + " of " + std::to_string(possible) +
                         " jobs run, there is room for " + std::to_string(max_jobs));
    for (const WorkerHost& host : world.workers()) violations.push_back(what_it_waits_for(host));
  }
  close_all(world, violations);
  return joined(first, violations);
}

TEST(Competition, OfThoseThatCompeteAsManyRunAsThereIsRoomForAndTheOthersAreToldTheLimit) {
  play_seeds(kOneIn, play_competition);
}

/// Of the world's aggregators, in any order.
std::vector<std::size_t> draw_pool(Random& random, std::size_t aggregators) {
  std::vector<std::size_t> pool;
  for (std::size_t i = 0; i < aggregators; ++i) {
    if (random.chance(0.8)) {
      pool.insert(pool.begin() + static_cast<std::ptrdiff_t>(random.below(pool.size() + 1)), i);
    }
  }
  if (pool.empty()) pool.push_back(random.below(aggregators));
  return pool;
}

/// Some rank is away for longer than it keeps its place while the job forms, and less than a member
/// may be silent.
void draw_pause(Random& random, Scenario& scenario) {
  WorkerPlan& worker = scenario.workers[random.below(scenario.workers.size())];
  worker.pause_from = worker.start + random.between(1, 30) * kMillisecond;
  worker.pause_to = worker.pause_from + random.between(1'020, 1'250) * kMillisecond;
}

std::string play_last_room(std::uint64_t seed) {
  Random random(seed);
  Scenario first = draw_job(random, seed, 1);
  World world(first.network, seed);
  const auto aggregators = static_cast<std::size_t>(random.between(1, 4));
  const auto shards = static_cast<std::uint16_t>(random.between(1, 4));
  for (std::size_t i = 0; i < aggregators; ++i) {
    first.max_jobs = random.chance(0.8) ? std::uint16_t{1} : std::uint16_t{2};
    world.add_aggregator(shard_config(first), shards);
  }
  const auto jobs = static_cast<std::uint32_t>(random.between(2, 3));
  std::vector<Scenario> scenarios;
  std::vector<std::size_t> begins;
  for (std::uint32_t job = 1; job <= jobs; ++job) {
    Scenario scenario = draw_job(random, seed + job, random.below(3) + 1);
    scenario.authenticated = first.authenticated;
    scenario.pool = draw_pool(random, aggregators);
    scenario.close_early = true;
    scenario.connect_within = kDeadline - kSecond;
    if (random.chance(0.2)) draw_pause(random, scenario);
    begins.push_back(add_workers(world, scenario, job, job, kDeadline));
    scenarios.push_back(std::move(scenario));
  }
  std::vector<std::string> violations;
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + kDeadline)) {
    violations.emplace_back("not all have had their turn");
  }
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    append(violations, check_results(world, scenarios[i], begins[i]));
  }
  close_all(world, violations);
  return joined(first, violations);
}

TEST(Competition, ForTheLastRoomOfManyShardsLetsAllInOneAfterAnother) {
  play_seeds(kOneIn, play_last_room);
}

/// One job runs while another waits for its room, and an aggregator of theirs starts again.
std::string play_restart(std::uint64_t seed) {
  Random random(seed);
  Scenario running = draw_job(random, seed, random.below(3) + 1);
  running.max_jobs = 1;
  running.close_early = true;
  World world(running.network, seed);
  add_aggregators(world, running);
  for (WorkerPlan& worker : running.workers) {
    worker.submit_at.back() = 3 * kSecond + random.between(0, 20) * kMillisecond;
  }
  add_workers(world, running, 1, 1, kDeadline);
  std::vector<std::string> violations;
  const auto runs = [&] {
    return std::ranges::all_of(world.workers(), [](const WorkerHost& host) {
      return host.started() && host.stream().state() == worker::Stream::State::kReady;
    });
  };
  if (!world.run_until(runs, world.now() + kSecond)) violations.emplace_back("it does not run");
  Scenario waiting = draw_job(random, seed + 1, random.below(3) + 1);
  waiting.authenticated = running.authenticated;
  waiting.connect_within = kDeadline - kSecond;
  waiting.close_early = true;
  const std::size_t begin = add_workers(world, waiting, 2, 2, kDeadline);
  world.run_for(random.between(100, 400) * kMillisecond);
  AggregatorHost& host = world.aggregator(random.below(world.aggregators().size()));
  host.vanish();
  world.run_for(random.between(0, 300) * kMillisecond);
  host.restart(world.now(), 5'000);
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + kDeadline)) {
    violations.emplace_back("not all is decided");
  }
  append(violations, check_results(world, running, 0));
  append(violations, check_results(world, waiting, begin));
  close_all(world, violations);
  return joined(running, violations);
}

TEST(Competition, AJobThatRunsKeepsItsRoomThroughARestartThoughAnotherWaitsForIt) {
  play_seeds(kOneIn, play_restart);
}

}  // namespace
}  // namespace natagg::simulation
