// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Jobs that compete for room: drawn from seeds, as drawn_seeds.hpp says.
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

/// Some jobs, the first of which has number 1, and the world they share.
struct Crowd {
  Scenario world;  // without a job
  std::vector<Scenario> jobs;

  bool operator==(const Crowd&) const = default;
  void draw_world(Random& random, std::uint64_t seed);
  /// Adds all jobs; returns the index in `to` of each one's rank 0.
  [[nodiscard]] std::vector<std::size_t> add_to(World& to) const;
  [[nodiscard]] std::string describe() const;
};

void Crowd::draw_world(Random& random, std::uint64_t seed) {
  world = draw_job(random, seed, 1);
  world.operations.clear();
  world.workers.clear();
}

std::vector<std::size_t> Crowd::add_to(World& to) const {
  std::vector<std::size_t> begins;
  for (std::uint32_t job = 1; job <= jobs.size(); ++job) {
    begins.push_back(add_workers(to, jobs[job - 1], job, job, kDeadline));
  }
  return begins;
}

std::string Crowd::describe() const {
  std::string text = to_string(world);
  for (const Scenario& job : jobs) text += "\n  and " + to_string(job);
  return text;
}

/// Fewer jobs, a simpler world, simpler jobs.
template <typename Story>
Simplifications<Story> simplifications_of_crowd(const Story& story) {
  Simplifications<Story> steps;
  for (std::size_t i = story.crowd.jobs.size(); i > 0; --i) {
    steps.emplace_back([i](Story& less) {
      std::vector<Scenario>& jobs = less.crowd.jobs;
      if (i <= jobs.size() && jobs.size() > 1) {
        jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i - 1));
      }
    });
  }
  append_of_part<Story, Scenario>(steps, simplifications(story.crowd.world),
                                  [](Story& less) { return &less.crowd.world; });
  for (std::size_t i = 0; i < story.crowd.jobs.size(); ++i) {
    append_of_part<Story, Scenario>(
        steps, simplifications(story.crowd.jobs[i]), [i](Story& less) -> Scenario* {
          return i < less.crowd.jobs.size() ? &less.crowd.jobs[i] : nullptr;
        });
  }
  return settled<Story>(std::move(steps), [](Story& less) {
    for (Scenario& job : less.crowd.jobs) share_world(less.crowd.world, job);
    return less.settle();
  });
}

/// More jobs than there is room for; each waits for some only so long.
struct Competition {
  Crowd crowd;

  bool operator==(const Competition&) const = default;
  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const;
  [[nodiscard]] Simplifications<Competition> simplifications() const {
    return simplifications_of_crowd(*this);
  }
  [[nodiscard]] std::string describe() const { return crowd.describe(); }
  [[nodiscard]] static bool settle() { return true; }
};

Competition draw_competition(std::uint64_t seed) {
  Random random(seed);
  const auto max_jobs = static_cast<std::uint16_t>(random.between(1, 3));
  const auto jobs = static_cast<std::uint32_t>(random.between(2, 5));
  const auto max_workers = static_cast<std::uint16_t>(random.between(2, 3));
  Competition story;
  story.crowd.draw_world(random, seed);
  story.crowd.world.max_jobs = max_jobs;
  story.crowd.world.max_workers = max_workers;
  for (std::uint32_t job = 1; job <= jobs; ++job) {
    Scenario scenario = draw_job(random, seed + job, random.below(3) + 1);
    share_world(story.crowd.world, scenario);
    scenario.close_early = random.chance(0.5);
    scenario.connect_within = random.pick({2, 6}) * kSecond;
    story.crowd.jobs.push_back(std::move(scenario));
  }
  return story;
}

/// Of `ranks`, from the world's worker `begin` on: how many are well, and how many have been told
/// `limit`.
struct Fates {
  std::size_t well = 0;
  std::size_t told = 0;
};

Fates fates(World& world, std::size_t begin, std::size_t ranks, const std::string& limit) {
  Fates fates;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const worker::Failure& failure = world.worker(begin + rank).stream().failure();
    if (failure.status == NATAGG_OK) ++fates.well;
    if (failure.message.find(limit) != std::string::npos) ++fates.told;
  }
  return fates;
}

std::vector<std::string> Competition::play(const Recording& recording) const {
  World world(crowd.world.network, crowd.world.seed, recording.lines);
  Recorder recorder(world, recording);
  add_aggregators(world, crowd.world);
  const std::vector<std::size_t> begins = crowd.add_to(world);
  std::vector<std::string> violations;
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + kDeadline)) {
    violations.emplace_back("not all is decided");
  }
  const std::size_t max_workers = crowd.world.max_workers;
  const std::size_t max_jobs = crowd.world.max_jobs;
  const std::string limit = "too many jobs: it takes " + std::to_string(max_jobs);
  std::size_t admitted = 0;
  std::size_t possible = 0;
  for (std::size_t i = 0; i < crowd.jobs.size(); ++i) {
    const std::size_t ranks = crowd.jobs[i].workers.size();
    const bool fits = ranks <= max_workers;
    const auto [well, told] =
        fates(world, begins[i], ranks, fits ? limit : std::to_string(max_workers));
    possible += fits ? 1 : 0;
    admitted += well == ranks ? 1 : 0;
    if ((well != ranks || !fits) && (well != 0 || told != ranks)) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        violations.push_back("job " + std::to_string(i + 1) + ": " +
                             what_it_waits_for(world.worker(begins[i] + rank)));
      }
    } else if (well == ranks) {
      append(violations, check_results(world, crowd.jobs[i], begins[i]));
    }
  }
  if (admitted < std::min(possible, max_jobs)) {
    violations.push_back(std::to_string(admitted) + " of " + std::to_string(possible) +
                         " jobs run, there is room for " + std::to_string(max_jobs));
    for (const WorkerHost& host : world.workers()) violations.push_back(what_it_waits_for(host));
  }
  close_all(world, violations);
  recorder.close();
  return violations;
}

TEST(Competition, OfThoseThatCompeteAsManyRunAsThereIsRoomForAndTheOthersAreToldTheLimit) {
  play_seeds<Competition>(playing_from_environment(kOneIn), draw_competition);
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

/// Jobs each of which takes some aggregators, waits for room, and leaves it to the next.
struct Queue {
  Crowd crowd;
  std::vector<std::uint16_t> room;  // for so many jobs, at each aggregator

  bool operator==(const Queue&) const = default;
  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const;
  [[nodiscard]] Simplifications<Queue> simplifications() const {
    return simplifications_of_crowd(*this);
  }
  [[nodiscard]] std::string describe() const;
  /// All stay in line with the world's number of aggregators, and with what they wait for.
  [[nodiscard]] bool settle();
};

Queue draw_queue(std::uint64_t seed) {
  Random random(seed);
  Queue story;
  story.crowd.draw_world(random, seed);
  Scenario& world = story.crowd.world;
  world.aggregators = static_cast<std::uint16_t>(random.between(1, 4));
  world.shards = static_cast<std::uint16_t>(random.between(1, 4));
  for (std::size_t i = 0; i < world.aggregators; ++i) {
    story.room.push_back(random.chance(0.8) ? std::uint16_t{1} : std::uint16_t{2});
  }
  const auto jobs = static_cast<std::uint32_t>(random.between(2, 3));
  for (std::uint32_t job = 1; job <= jobs; ++job) {
    Scenario scenario = draw_job(random, seed + job, random.below(3) + 1);
    share_world(world, scenario);
    scenario.pool = draw_pool(random, world.aggregators);
    scenario.close_early = true;
    scenario.connect_within = kDeadline - kSecond;
    if (random.chance(0.2)) draw_pause(random, scenario);
    story.crowd.jobs.push_back(std::move(scenario));
  }
  return story;
}

std::vector<std::string> Queue::play(const Recording& recording) const {
  World world(crowd.world.network, crowd.world.seed, recording.lines);
  Recorder recorder(world, recording);
  for (const std::uint16_t jobs : room) {
    Scenario scenario = crowd.world;
    scenario.max_jobs = jobs;
    world.add_aggregator(shard_config(scenario), scenario.shards);
  }
  const std::vector<std::size_t> begins = crowd.add_to(world);
  std::vector<std::string> violations;
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + kDeadline)) {
    violations.emplace_back("not all have had their turn");
  }
  for (std::size_t i = 0; i < crowd.jobs.size(); ++i) {
    append(violations, check_results(world, crowd.jobs[i], begins[i]));
  }
  close_all(world, violations);
  recorder.close();
  return violations;
}

bool Queue::settle() {
  const std::size_t aggregators = crowd.world.aggregators;
  room.resize(aggregators);
  for (Scenario& job : crowd.jobs) {
    std::erase_if(job.pool, [&](std::size_t aggregator) { return aggregator >= aggregators; });
    if (job.pool.empty()) job.pool.push_back(0);
    job.close_early = true;
  }
  return true;
}

std::string Queue::describe() const {
  std::string text = crowd.describe() + "\n  room for";
  for (const std::uint16_t jobs : room) text += ' ' + std::to_string(jobs);
  return text + " at each aggregator";
}

TEST(Competition, ForTheLastRoomOfManyShardsLetsAllInOneAfterAnother) {
  play_seeds<Queue>(playing_from_environment(kOneIn), draw_queue);
}

/// One job runs while another waits for its room, and an aggregator of theirs starts again.
struct Restart {
  Scenario running;
  Scenario waiting;
  Time after = 0;         // the second job came
  std::size_t which = 0;  // aggregator
  Time away = 0;

  bool operator==(const Restart&) const = default;
  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const;
  [[nodiscard]] Simplifications<Restart> simplifications() const;
  [[nodiscard]] std::string describe() const;
};

/// The running job has something left to do for so long.
constexpr Time kRuns = 3 * kSecond;

Restart draw_restart(std::uint64_t seed) {
  Random random(seed);
  Restart story;
  story.running = draw_job(random, seed, random.below(3) + 1);
  story.running.max_jobs = 1;
  story.running.close_early = true;
  for (WorkerPlan& worker : story.running.workers) {
    worker.submit_at.back() = kRuns + random.between(0, 20) * kMillisecond;
  }
  story.waiting = draw_job(random, seed + 1, random.below(3) + 1);
  share_world(story.running, story.waiting);
  story.waiting.connect_within = kDeadline - kSecond;
  story.waiting.close_early = true;
  story.after = random.between(100, 400) * kMillisecond;
  story.which = random.below(story.running.aggregators);
  story.away = random.between(0, 300) * kMillisecond;
  return story;
}

std::vector<std::string> Restart::play(const Recording& recording) const {
  World world(running.network, running.seed, recording.lines);
  Recorder recorder(world, recording);
  add_aggregators(world, running);
  add_workers(world, running, 1, 1, kDeadline);
  std::vector<std::string> violations;
  const auto runs = [&] {
    return std::ranges::all_of(world.workers(),
                               [](const WorkerHost& host) { return host.ready(); });
  };
  if (!world.run_until(runs, world.now() + kSecond)) violations.emplace_back("it does not run");
  const std::size_t begin = add_workers(world, waiting, 2, 2, kDeadline);
  world.run_for(after);
  AggregatorHost& host = world.aggregator(which);
  host.vanish();
  world.run_for(away);
  host.restart(world.now(), 5'000);
  if (!world.run_until([&] { return world.workers_done(); }, world.now() + kDeadline)) {
    violations.emplace_back("not all is decided");
  }
  append(violations, check_results(world, running, 0));
  append(violations, check_results(world, waiting, begin));
  close_all(world, violations);
  recorder.close();
  return violations;
}

Simplifications<Restart> Restart::simplifications() const {
  Simplifications<Restart> steps;
  append_of_part<Restart, Scenario>(steps, simulation::simplifications(running),
                                    [](Restart& story) { return &story.running; });
  append_of_part<Restart, Scenario>(steps, simulation::simplifications(waiting),
                                    [](Restart& story) { return &story.waiting; });
  steps.emplace_back([](Restart& story) { story.away = 0; });
  return settled<Restart>(std::move(steps), [](Restart& story) {
    share_world(story.running, story.waiting);
    story.which = std::min<std::size_t>(story.which, story.running.aggregators - 1U);
    story.running.close_early = story.waiting.close_early = true;
    for (WorkerPlan& worker : story.running.workers) {
      worker.submit_at.back() = std::max(worker.submit_at.back(), kRuns);
    }
    return true;
  });
}

std::string Restart::describe() const {
  return to_string(running) + "\n  then " + to_string(waiting) + "\n  after " +
         std::to_string(after / kMillisecond) + " ms aggregator " + std::to_string(which) +
         " is away for " + std::to_string(away / kMillisecond) + " ms";
}

TEST(Competition, AJobThatRunsKeepsItsRoomThroughARestartThoughAnotherWaitsForIt) {
  play_seeds<Restart>(playing_from_environment(kOneIn), draw_restart);
}

TEST(Competition, IsReplayedFromItsTraces) {
  for (const Replayed& replayed :
       {replay_traces<Competition>(draw_competition, kTraces),
        replay_traces<Queue>(draw_queue, kTraces), replay_traces<Restart>(draw_restart, kTraces)}) {
    EXPECT_GT(replayed.answers, 10U);
    EXPECT_EQ(replayed.findings, std::vector<std::string>());
    EXPECT_LT(replayed.refusals.size(), kTraces);
    for (const std::string& refusal : replayed.refusals) {
      EXPECT_NE(refusal.find("is authenticated"), std::string::npos) << refusal;
    }
  }
}

}  // namespace
}  // namespace natagg::simulation
