// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Jobs that are in each other's way, or in their own: drawn from seeds, as drawn_seeds.hpp says.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "simulation/drawn_seeds.hpp"
#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kOneIn = 250;
constexpr Time kDeadline = 15 * kSecond;
constexpr Time kCloseLimit = 4 * kSecond;

/// A job of `ranks` with a few short all-reduces, on a network that may do some harm.
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
  return scenario;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string joined(const Scenario& scenario, const std::vector<std::string>& violations) {
  if (violations.empty()) return {};
  std::string text = to_string(scenario);
  for (const std::string& violation : violations) text += "\n  " + violation;
  return text;
}

/// Everybody leaves, and nothing stays.
void close_all(World& world, std::vector<std::string>& violations) {
  for (WorkerHost& host : world.workers()) host.close_when_done();
  const auto over = [&] { return world.workers_closed() && world.aggregators_idle(); };
  if (!world.run_until(over, world.now() + kCloseLimit)) {
    violations.emplace_back("something is left behind at the end");
  }
  append(violations, world.violations());
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// `scenario` as one rank has it that differs from operation `from` on.
Scenario disagree(Random& random, const Scenario& scenario, std::size_t from) {
  Scenario other = scenario;
  OperationPlan& operation = other.operations[from];
  switch (random.below(4)) {
    case 0: operation.length += random.pick<std::uint64_t>({1, 1'408, 30'000}); break;
    case 1:
      operation.type = random.pick({proto::DataType::kFloat16, proto::DataType::kBfloat16});
      break;
    case 2: operation.reduction = proto::Reduction::kAverage; break;
    default:
      if (from + 1 < other.operations.size() &&
          other.operations[from + 1].length != operation.length) {
        std::swap(operation, other.operations[from + 1]);
      } else {
        other.operations.insert(other.operations.begin() + static_cast<std::ptrdiff_t>(from),
                                {.length = operation.length + 5});
        other.operations.pop_back();
      }
  }
  return other;
}

std::string play_disagreement(std::uint64_t seed) {
  Random random(seed);
  const auto ranks = static_cast<std::size_t>(random.between(2, 4));
  Scenario scenario = draw_job(random, seed, ranks);
  const std::size_t from = random.below(scenario.operations.size());
  const std::size_t deviant = random.below(ranks);
  const Scenario other = disagree(random, scenario, from);
  World world(scenario.network, seed);
  add_aggregators(world, scenario);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    add_rank(world, rank == deviant ? other : scenario, rank, 1, 1, kDeadline);
  }
  const Time limit = world.now() + kDeadline / 2;
  std::vector<std::string> violations;
  if (!world.run_until([&] { return world.workers_done(); }, limit)) {
    violations.emplace_back("nobody tells of operation " + std::to_string(from));
  }
  const std::string culprit = "rank " + std::to_string(deviant) + " submitted a ";
  for (const WorkerHost& host : world.workers()) {
    const std::string& message = host.stream().failure().message;
    if (host.stream().failure().status != NATAGG_MISMATCH || count(message, culprit) != 1 ||
        count(message, " submitted a ") != 2) {
      violations.push_back(what_it_waits_for(host));
    }
    // Later ones on which all agree may end well before the news is out.
    if (host.jobs()[from].status == NATAGG_OK) {
      violations.push_back("operation " + std::to_string(from) + " is said to be well");
    }
  }
  scenario.operations.resize(from);
  append(violations, check_results(world, scenario, 0, true));
  close_all(world, violations);
  return joined(scenario, violations);
}

TEST(Jobs, RanksThatSubmitDifferentOperationsAreAllToldOfBoth) {
  play_seeds(kOneIn, play_disagreement);
}

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
    if ((well != ranks || !fits) && (well != 0 || told == 0 || (!fits && told != ranks))) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        violations.push_back("job " + std::to_string(i + 1) + ": " +
                             what_it_waits_for(world.worker(begins[i] + rank)));
      }
    } else if (well == ranks) {
      append(violations, check_results(world, scenarios[i], begins[i]));
    }
  }
  // Of several shards, jobs can each hold one that the others need until all give up.
  const bool one_shard = first.aggregators * first.shards == 1;
  if (one_shard && admitted < std::min<std::size_t>(possible, max_jobs)) {
    violations.push_back(std::to_string(admitted) + " of " + std::to_string(possible) +
                         " jobs run, there is room for " + std::to_string(max_jobs));
    for (const WorkerHost& host : world.workers()) violations.push_back(what_it_waits_for(host));
  }
  close_all(world, violations);
  return joined(first, violations);
}

TEST(Jobs, OfThoseThatCompeteEachRunsWellOrIsToldTheLimitAndOneShardTakesAllItHasRoomFor) {
  play_seeds(kOneIn, play_competition);
}

std::string play_replacement(std::uint64_t seed) {
  Random random(seed);
  Scenario before = draw_job(random, seed, random.below(4) + 1);
  Scenario after = draw_job(random, seed + 1, random.below(4) + 1);
  Scenario neighbour = draw_job(random, seed + 2, random.below(3) + 1);
  const Time change = random.between(0, 300) * kMillisecond;
  after.authenticated = neighbour.authenticated = before.authenticated;
  // The other job runs all the time.
  neighbour.one_at_a_time = true;
  const Time interval = 4 * kSecond / static_cast<Time>(neighbour.operations.size());
  for (WorkerPlan& worker : neighbour.workers) {
    for (std::size_t i = 0; i < worker.submit_at.size(); ++i) {
      worker.submit_at[i] = worker.start + interval * static_cast<Time>(i);
    }
  }
  World world(before.network, seed);
  add_aggregators(world, before);
  const std::size_t second = add_workers(world, neighbour, 2, 2, kDeadline);
  const std::size_t first = add_workers(world, before, 1, 1, kDeadline);
  world.run_for(change);
  for (std::size_t rank = 0; rank < before.workers.size(); ++rank) {
    WorkerHost& host = world.worker(first + rank);
    if (random.chance(0.3)) {
      host.vanish();
    } else {
      host.close_at(world.now() + random.between(0, 5) * kMillisecond);
    }
  }
  world.run_for(random.between(0, 30) * kMillisecond);
  const std::size_t third = add_workers(world, after, 1, 3, kDeadline);
  std::vector<std::string> violations;
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + 2 * kDeadline)) {
    violations.emplace_back("somebody waits for ever");
  }
  append(violations, check_results(world, before, first, true));
  append(violations, check_results(world, neighbour, second));
  append(violations, check_results(world, after, third));
  close_all(world, violations);
  return joined(after, violations);
}

TEST(Jobs, OneIsReplacedByAnotherOfAnyNumberOfRanksWhileItsNeighbourRunsOn) {
  play_seeds(kOneIn, play_replacement);
}

}  // namespace
}  // namespace natagg::simulation
