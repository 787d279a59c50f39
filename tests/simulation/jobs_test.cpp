// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A job whose ranks disagree, and one that is replaced by another: drawn from seeds, as
// drawn_seeds.hpp says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulation/drawn_seeds.hpp"
#include "simulation/replayed.hpp"
#include "simulation/short_jobs.hpp"

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kOneIn = 250;
constexpr std::uint64_t kTraces = 3;
constexpr Time kDeadline = 15 * kSecond;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

/// From some operation on, one rank has others.
struct Disagreement {
  Scenario scenario;
  std::size_t deviant = 0;
  std::vector<OperationPlan> others;  // the deviant's

  bool operator==(const Disagreement&) const = default;
  /// The first operation about which they disagree; as many as there are: none.
  [[nodiscard]] std::size_t from() const;
  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const;
  [[nodiscard]] Simplifications<Disagreement> simplifications() const;
  [[nodiscard]] std::string describe() const;
};

std::size_t Disagreement::from() const {
  const auto same = [](const OperationPlan& one, const OperationPlan& other) {
    return one.length == other.length && one.type == other.type && one.reduction == other.reduction;
  };
  const auto [mine, theirs] = std::ranges::mismatch(scenario.operations, others, same);
  return static_cast<std::size_t>(mine - scenario.operations.begin());
}

/// `operations` as one rank has them that differs from operation `from` on.
std::vector<OperationPlan> disagree(Random& random, std::vector<OperationPlan> operations,
                                    std::size_t from) {
  OperationPlan& operation = operations[from];
  switch (random.below(4)) {
    case 0: operation.length += random.pick<std::uint64_t>({1, 1'408, 30'000}); break;
    case 1:
      operation.type = random.pick({proto::DataType::kFloat16, proto::DataType::kBfloat16});
      break;
    case 2: operation.reduction = proto::Reduction::kAverage; break;
    default:
      if (from + 1 < operations.size() && operations[from + 1].length != operation.length) {
        std::swap(operation, operations[from + 1]);
      } else {
        operations.insert(operations.begin() + static_cast<std::ptrdiff_t>(from),
                          {.length = operation.length + 5});
        operations.pop_back();
      }
  }
  return operations;
}

Disagreement draw_disagreement(std::uint64_t seed) {
  Random random(seed);
  const auto ranks = static_cast<std::size_t>(random.between(2, 4));
  Disagreement story{.scenario = draw_job(random, seed, ranks), .others = {}};
  const std::size_t from = random.below(story.scenario.operations.size());
  story.deviant = random.below(ranks);
  story.others = disagree(random, story.scenario.operations, from);
  return story;
}

std::vector<std::string> Disagreement::play(const Recording& recording) const {
  Scenario other = scenario;
  other.operations = others;
  World world(scenario.network, scenario.seed, recording.lines);
  Recorder recorder(world, recording);
  add_aggregators(world, scenario);
  for (std::size_t rank = 0; rank < scenario.workers.size(); ++rank) {
    add_rank(world, rank == deviant ? other : scenario, rank, 1, 1, kDeadline);
  }
  const Time limit = world.now() + kDeadline / 2;
  std::vector<std::string> violations;
  const std::string operation = "operation " + std::to_string(from());
  if (!world.run_until([&] { return world.workers_done(); }, limit)) {
    violations.push_back("nobody tells of " + operation);
  }
  const std::string culprit = "rank " + std::to_string(deviant) + " submitted a ";
  for (const WorkerHost& host : world.workers()) {
    const std::string& message = host.stream().failure().message;
    if (host.stream().failure().status != NATAGG_MISMATCH || count(message, culprit) != 1 ||
        count(message, " submitted a ") != 2) {
      violations.push_back(what_it_waits_for(host));
    }
    // Later ones on which all agree may end well before the news is out.
    if (host.jobs()[from()].status == NATAGG_OK) {
      violations.push_back(operation + " is said to be well");
    }
  }
  Scenario agreed = scenario;
  agreed.operations.resize(from());
  append(violations, check_results(world, agreed, 0, true));
  close_all(world, violations);
  recorder.close();
  return violations;
}

/// Of all ranks' operations alike, as long as two ranks are left that disagree. A length of 0 is
/// not told to anybody.
Simplifications<Disagreement> Disagreement::simplifications() const {
  Simplifications<Disagreement> steps;
  for (const Simplification<Scenario>& simplify : simulation::simplifications(scenario)) {
    steps.emplace_back([simplify](Disagreement& story) {
      Scenario other = story.scenario;
      other.operations = story.others;
      simplify(other);
      simplify(story.scenario);
      story.others = other.operations;
    });
  }
  return settled<Disagreement>(std::move(steps), [](Disagreement& story) {
    const auto empty = [](const OperationPlan& operation) { return operation.length == 0; };
    story.deviant = std::min(story.deviant, story.scenario.workers.size() - 1);
    return story.scenario.workers.size() > 1 && story.from() < story.others.size() &&
           std::ranges::none_of(story.scenario.operations, empty) &&
           std::ranges::none_of(story.others, empty);
  });
}

std::string Disagreement::describe() const {
  Scenario other = scenario;
  other.operations = others;
  return to_string(scenario) + "\n  but rank " + std::to_string(deviant) + " has " +
         operations_to_string(other);
}

TEST(Jobs, RanksThatSubmitDifferentOperationsAreAllToldOfBoth) {
  play_seeds<Disagreement>(playing_from_environment(kOneIn), draw_disagreement);
}

TEST(Jobs, ThatDisagreeAreShownByTheirTracesPacketByPacket) {
  const Replayed replayed = replay_traces<Disagreement>(draw_disagreement, kTraces);
  EXPECT_GT(replayed.findings.size(), kTraces);
  for (const std::string& finding : replayed.findings) {
    EXPECT_NE(finding.find("is for another chunk than the first"), std::string::npos) << finding;
  }
}

/// A job that ends at some moment, and the next of its number.
struct Replacement {
  Scenario before;
  Scenario after;
  Scenario neighbour;           // runs all the time
  Time change = 0;              // when the first job begins to end
  std::vector<Time> closes_in;  // of its ranks, from then on; kNever: it is gone without a word
  Time gap = 0;                 // until the next begins

  bool operator==(const Replacement&) const = default;
  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const;
  [[nodiscard]] Simplifications<Replacement> simplifications() const;
  [[nodiscard]] std::string describe() const;
};

Replacement draw_replacement(std::uint64_t seed) {
  Random random(seed);
  Replacement story;
  story.before = draw_job(random, seed, random.below(4) + 1);
  story.after = draw_job(random, seed + 1, random.below(4) + 1);
  story.neighbour = draw_job(random, seed + 2, random.below(3) + 1);
  story.change = random.between(0, 300) * kMillisecond;
  share_world(story.before, story.after);
  share_world(story.before, story.neighbour);
  story.neighbour.one_at_a_time = true;
  const Time interval = 4 * kSecond / static_cast<Time>(story.neighbour.operations.size());
  for (WorkerPlan& worker : story.neighbour.workers) {
    for (std::size_t i = 0; i < worker.submit_at.size(); ++i) {
      worker.submit_at[i] = worker.start + interval * static_cast<Time>(i);
    }
  }
  for (std::size_t rank = 0; rank < story.before.workers.size(); ++rank) {
    const bool vanishes = random.chance(0.3);
    story.closes_in.push_back(vanishes ? kNever : random.between(0, 5) * kMillisecond);
  }
  story.gap = random.between(0, 30) * kMillisecond;
  return story;
}

std::vector<std::string> Replacement::play(const Recording& recording) const {
  World world(before.network, before.seed, recording.lines);
  Recorder recorder(world, recording);
  add_aggregators(world, before);
  const std::size_t second = add_workers(world, neighbour, 2, 2, kDeadline);
  const std::size_t first = add_workers(world, before, 1, 1, kDeadline);
  world.run_for(change);
  for (std::size_t rank = 0; rank < before.workers.size(); ++rank) {
    WorkerHost& host = world.worker(first + rank);
    if (closes_in[rank] == kNever) {
      host.vanish();
    } else {
      host.close_at(world.now() + closes_in[rank]);
    }
  }
  world.run_for(gap);
  const std::size_t third = add_workers(world, after, 1, 3, kDeadline);
  std::vector<std::string> violations;
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + 2 * kDeadline)) {
    violations.emplace_back("somebody waits for ever");
  }
  append(violations, check_results(world, before, first, true));
  append(violations, check_results(world, neighbour, second));
  append(violations, check_results(world, after, third));
  close_all(world, violations);
  recorder.close();
  return violations;
}

Simplifications<Replacement> Replacement::simplifications() const {
  Simplifications<Replacement> steps;
  steps.emplace_back([](Replacement& story) { story.change = 0; });
  steps.emplace_back([](Replacement& story) { story.gap = 0; });
  steps.emplace_back([](Replacement& story) { std::ranges::fill(story.closes_in, 0); });
  for (Scenario Replacement::*job :
       {&Replacement::before, &Replacement::after, &Replacement::neighbour}) {
    append_of_part<Replacement, Scenario>(steps, simulation::simplifications(this->*job),
                                          [job](Replacement& story) { return &(story.*job); });
  }
  steps.emplace_back([](Replacement& story) { story.change /= 2; });
  return settled<Replacement>(std::move(steps), [](Replacement& story) {
    share_world(story.before, story.after);
    share_world(story.before, story.neighbour);
    story.closes_in.resize(story.before.workers.size());
    return true;
  });
}

std::string Replacement::describe() const {
  std::string text = to_string(before) + "\n  from " + std::to_string(change / kMillisecond) +
                     " ms on its ranks leave after";
  for (const Time time : closes_in) {
    text += time == kNever ? " (no word)" : ' ' + std::to_string(time / kMillisecond) + " ms";
  }
  return text + "\n  then, after " + std::to_string(gap / kMillisecond) + " ms, " +
         to_string(after) + "\n  beside " + to_string(neighbour);
}

TEST(Jobs, OneIsReplacedByAnotherOfAnyNumberOfRanksWhileItsNeighbourRunsOn) {
  play_seeds<Replacement>(playing_from_environment(kOneIn), draw_replacement);
}

TEST(Jobs, ThatReplaceOneAnotherAreReplayedFromTheirTraces) {
  const Replayed replayed = replay_traces<Replacement>(draw_replacement, kTraces);
  EXPECT_GT(replayed.answers, 100U);
  EXPECT_EQ(replayed.findings, std::vector<std::string>());
}

}  // namespace
}  // namespace natagg::simulation
