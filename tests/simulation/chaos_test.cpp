// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Jobs under faults drawn from seeds, as drawn_seeds.hpp says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulation/drawn_seeds.hpp"
#include "simulation/faults.hpp"
#include "simulation/play.hpp"
#include "simulation/replayed.hpp"

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kOneIn = 250;
constexpr std::uint64_t kTraces = 4;
constexpr Time kDeadline = 15 * kSecond;
constexpr Time kMargin = 700 * kMillisecond;  // of deadlines, for the turn in which they are seen
constexpr Time kMostOperations = 25;
// A rank that is gone is found silent in 1.5 s, one that was joining in 1 s, and a place that has
// moved may be left by one rank after another.
constexpr Time kCloseLimit = 4 * kSecond;

/// A job whose all-reduces come one by one for as long as there are faults.
Scenario draw_job(Random& random, std::uint64_t seed, std::uint16_t aggregators,
                  std::size_t workers, Time last_fault) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.network.delay = random.pick({50, 300}) * kMicrosecond;
  scenario.network.loss = random.pick({0.0, 0.0, 0.02});
  scenario.network.reordering = random.pick({0.0, 0.02});
  scenario.network.corruption = random.pick({0.0, 0.0, 0.01});
  scenario.aggregators = aggregators;
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.multicast = random.chance(0.5);
  scenario.authenticated = random.chance(0.2);
  scenario.first_sequence = random.pick<std::uint32_t>({0, 0xFFFF'FFF8});
  scenario.first_operation = random.pick<std::uint32_t>({0, 0xFFFF'FFFE});
  scenario.one_at_a_time = random.chance(0.5);
  const Time interval =
      std::max<Time>(random.pick({50, 300, 900}) * kMillisecond, last_fault / kMostOperations);
  scenario.operations.resize(static_cast<std::size_t>(last_fault / interval + 3));
  for (OperationPlan& operation : scenario.operations) {
    operation.length = random.pick<std::uint64_t>({1, 700, 1'409, 9'000, 40'000});
    operation.in_place = random.chance(0.7);
  }
  scenario.workers.resize(workers);
  const auto window = random.pick<std::uint16_t>({1, 4, 64});
  for (WorkerPlan& worker : scenario.workers) {
    worker.window = window;
    Time time = 0;
    for (std::size_t i = 0; i < scenario.operations.size(); ++i) {
      time += interval;
      worker.submit_at.push_back(time + random.between(0, interval / 4));
    }
  }
  draw_lanes(scenario);
  return scenario;
}

struct Story {
  Scenario scenario;
  std::vector<Fault> faults;
  bool must_succeed = false;

  bool operator==(const Story&) const = default;
  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const;
  [[nodiscard]] Simplifications<Story> simplifications() const;
  [[nodiscard]] std::string describe() const;
};

/// Nobody is left behind in windows that hold nearly all; in the smallest, somebody soon is.
void draw_lateness(Random& random, Scenario& scenario, bool gentle) {
  const auto window = gentle ? std::uint16_t{64} : random.pick<std::uint16_t>({1, 1, 2, 8});
  for (WorkerPlan& worker : scenario.workers) worker.window = window;
  if (gentle || random.chance(0.5)) return;
  WorkerPlan& late = scenario.workers[random.below(scenario.workers.size())];
  const Time by = random.between(0, 4 * kSecond);
  for (Time& time : late.submit_at) time += by;
}

Story draw_story(std::uint64_t seed, bool gentle) {
  Random random(seed);
  const auto aggregators = static_cast<std::uint16_t>(random.between(1, 3));
  const auto workers = static_cast<std::size_t>(random.between(1, 4));
  Story story{.scenario = {},
              .faults = gentle ? draw_gentle_faults(random, aggregators, workers)
                               : draw_wild_faults(random, aggregators, workers),
              .must_succeed = gentle};
  story.scenario = draw_job(random, seed, aggregators, workers, story.faults.back().at);
  if (random.chance(0.4)) {
    draw_stragglers(random, story.scenario);
    draw_lateness(random, story.scenario, gentle);
  }
  return story;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Operations that ended too late, or without a reason.
std::vector<std::string> check_ends(World& world, const std::vector<Fault>& faults) {
  std::vector<std::string> violations;
  for (std::size_t rank = 0; rank < world.workers().size(); ++rank) {
    const WorkerHost& host = world.worker(rank);
    if (!host.alive()) continue;
    const std::string name = "rank " + std::to_string(rank);
    Time paused = 0;
    for (const Fault& fault : faults) {
      const bool stands =
          fault.kind == Fault::Kind::kWorkerPause || fault.kind == Fault::Kind::kWorkerStand;
      if (stands && fault.which == rank) paused += fault.duration;
    }
    for (const Job& job : host.jobs()) {
      if (job.submitted == kNever) continue;
      if (!job.status || job.ended > job.submitted + kDeadline + paused + kMargin) {
        violations.push_back(name + " waits beyond its deadline");
        break;
      }
      if (job.status != NATAGG_OK && host.stream().failure().message.empty()) {
        violations.push_back(name + " fails without a reason");
        break;
      }
    }
  }
  return violations;
}

/// All that is left of the job ends; another one on the same aggregators is not disturbed.
std::vector<std::string> form_anew(World& world, const Scenario& scenario, Answers& answers) {
  std::vector<std::string> violations;
  world.network().heal();
  for (WorkerHost& host : world.workers()) host.vanish();
  std::uint32_t epoch = 0x7000'0000;
  for (AggregatorHost& host : world.aggregators()) {
    if (!host.alive()) host.restart(world.now(), epoch += 0x1'0000);
  }
  answers.forget();
  Scenario next = scenario;
  next.operations.resize(1);
  for (WorkerPlan& worker : next.workers) worker.submit_at.assign(1, 0);
  const std::size_t first = add_workers(world, next, 1, 2);
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + 10 * kSecond)) {
    for (const WorkerHost& host : world.workers()) {
      if (host.alive()) violations.push_back("anew: " + what_it_waits_for(host));
    }
    return violations;
  }
  append(violations, check_results(world, next, first, false, &answers));
  for (WorkerHost& host : world.workers()) host.close_when_done();
  const auto over = [&] { return world.workers_closed() && world.aggregators_idle(); };
  if (!world.run_until(over, world.now() + kCloseLimit)) {
    violations.emplace_back("something is left behind at the end");
  }
  return violations;
}

std::vector<std::string> Story::play(const Recording& recording) const {
  World world(scenario.network, scenario.seed, recording.lines);
  Recorder recorder(world, recording);
  add_aggregators(world, scenario);
  add_workers(world, scenario, 1, 1, kDeadline);
  Answers answers(world, scenario.workers.size());
  if (must_succeed) {
    // Connecting needs every aggregator; there is nothing to resume before.
    const auto ready = [](const WorkerHost& host) { return host.ready(); };
    world.run_until([&] { return std::ranges::all_of(world.workers(), ready); },
                    world.now() + 5 * kSecond);
  }
  schedule(world, faults);
  Time over = world.now();
  for (const Fault& fault : faults) {
    over = std::max(over, world.now() + fault.at + fault.duration);
  }
  const Time last = scenario.workers[0].submit_at.back();
  const auto limit = static_cast<Time>(scenario.operations.size() + 2) * kDeadline;
  world.run_until([&] { return world.workers_done(); }, world.now() + last + limit);
  std::vector<std::string> violations = check_ends(world, faults);
  append(violations, check_results(world, scenario, 0, !must_succeed, &answers));
  if (world.now() < over) world.run_for(over - world.now());
  if (violations.empty()) append(violations, form_anew(world, scenario, answers));
  append(violations, world.violations());
  recorder.close();
  return violations;
}

/// Without each of the faults, then a simpler job, then faults that last half as long.
Simplifications<Story> Story::simplifications() const {
  Simplifications<Story> steps;
  for (std::size_t i = faults.size(); i > 0; --i) {
    steps.emplace_back([i](Story& story) {
      if (i > story.faults.size()) return;
      story.faults.erase(story.faults.begin() + static_cast<std::ptrdiff_t>(i - 1));
    });
  }
  append_of_part<Story, Scenario>(steps, simulation::simplifications(scenario),
                                  [](Story& story) { return &story.scenario; });
  for (std::size_t i = 0; i < faults.size(); ++i) {
    steps.emplace_back([i](Story& story) {
      if (i < story.faults.size()) story.faults[i].duration /= 2;
    });
  }
  return settled<Story>(std::move(steps), [](Story& story) {
    const std::size_t aggregators = story.scenario.aggregators;
    drop_faults_of_the_absent(story.faults, aggregators, story.scenario.workers.size());
    return !story.must_succeed || some_aggregator_always_lives(story.faults, aggregators);
  });
}

std::string Story::describe() const {
  std::string text = to_string(scenario);
  for (const Fault& fault : faults) text += "\n  " + to_string(fault);
  return text;
}

void play_all(bool gentle) {
  play_seeds<Story>(playing_from_environment(kOneIn),
                    [gentle](std::uint64_t seed) { return draw_story(seed, gentle); });
}

TEST(Chaos, AJobSurvivesFaultsThatAreOverBeforeTheNext) {
  play_all(true);
}

TEST(Chaos, WhateverHappensEachOperationIsRightOrFailsInTimeAndTheJobFormsAnew) {
  play_all(false);
}

TEST(Chaos, OfAJobThatMustSurviveLeavesItAnAggregatorHoweverItShrinks) {
  using Kind = Fault::Kind;
  Story story{.scenario = {},
              .faults = {{.kind = Kind::kKill, .which = 0},
                         {.kind = Kind::kRestart, .at = 5 * kSecond, .which = 0},
                         {.kind = Kind::kWorkerPause, .at = 10 * kSecond, .which = 1},
                         {.kind = Kind::kKill, .at = 15 * kSecond, .which = 1}},
              .must_succeed = true};
  story.scenario.aggregators = 3;
  story.scenario.operations.resize(2);
  story.scenario.workers.resize(2);
  for (WorkerPlan& worker : story.scenario.workers) worker.submit_at.assign(2, 0);
  const auto least = [&story](std::ptrdiff_t kills) {
    const auto steps = [](const Story& tried) { return tried.simplifications(); };
    const auto fails = [kills](const Story& tried) {
      return std::ranges::count(tried.faults, Kind::kKill, &Fault::kind) >= kills;
    };
    return shrink<Story>(story, steps, fails).story;
  };
  const Story one = least(1);
  EXPECT_EQ(one.faults, std::vector{story.faults[0]});
  EXPECT_EQ(one.scenario.aggregators, 2);
  EXPECT_EQ(one.scenario.workers.size(), 1U);
  // Two that die need a third, or the first one back.
  const Story two = least(2);
  EXPECT_EQ(two.faults, (std::vector{story.faults[0], story.faults[3]}));
  EXPECT_EQ(two.scenario.aggregators, 3);
  story.scenario.aggregators = 2;
  EXPECT_EQ(least(2).faults, (std::vector{story.faults[0], story.faults[1], story.faults[3]}));
}

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::any_of(
      parts, [&](const char* part) { return text.find(part) != std::string::npos; });
}

TEST(Chaos, IsReplayedFromItsTracesOrTheReasonIsTold) {
  const auto draw = [](std::uint64_t seed) { return draw_story(seed, seed % 2 == 0); };
  const Replayed replayed = replay_traces<Story>(draw, kTraces);
  EXPECT_GT(replayed.answers, 100U);
  // The trace shows no ABORT of an aggregator that dies before it notices that somebody is gone.
  for (const std::string& finding : replayed.findings) {
    EXPECT_TRUE(contains_any(finding, {"ends the session, which it did not when it was recorded"}))
        << finding;
  }
  // A corrupted packet may be of any job.
  for (const std::string& refusal : replayed.refusals) {
    EXPECT_TRUE(contains_any(refusal, {"is authenticated", "which has a straggler deadline",
                                       "its job number is damaged"}))
        << refusal;
  }
  EXPECT_LT(replayed.refusals.size(), kTraces);
}

}  // namespace
}  // namespace natagg::simulation
