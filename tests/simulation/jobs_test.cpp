// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A job whose ranks disagree, and one that is replaced by another: drawn from seeds, as
// drawn_seeds.hpp says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulation/drawn_seeds.hpp"
#include "simulation/short_jobs.hpp"

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kOneIn = 250;
constexpr Time kDeadline = 15 * kSecond;

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
