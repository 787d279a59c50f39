// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Ranks and aggregators that die, disagree or never come: everybody else is told soon, who is to
// blame, and can start anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulation/story.hpp"

namespace natagg::simulation {
namespace {

constexpr Time kMemberTimeout = 1'500 * kMillisecond;  // ShardConfig's and StreamConfig's default
constexpr Time kMargin = 500 * kMillisecond;

/// `world` ranks with one long all-reduce, on a network that loses up to 5 %.
Scenario long_scenario(std::uint64_t seed, std::size_t world) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.network.loss = random.pick({0.0, 0.01, 0.05});
  scenario.network.delay = 200 * kMicrosecond;
  scenario.aggregators = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.multicast = random.chance(0.5);
  scenario.authenticated = seed % 2 == 1;
  scenario.operations.assign(2, {.length = 60'000});
  scenario.workers.resize(world);
  for (WorkerPlan& worker : scenario.workers) {
    worker.submit_at.assign(2, 0);
    worker.window = 4;
    worker.in_flight = 8;
  }
  draw_lanes(scenario);
  return scenario;
}

void expect_failed(const WorkerHost& host, natagg_status status) {
  ASSERT_TRUE(host.done()) << "rank " << host.config().rank << " still waits";
  EXPECT_EQ(host.stream().failure().status, status) << host.stream().failure().message;
  EXPECT_EQ(host.jobs().back().status, status);
}

void expect_mentions(const std::string& message, const std::string& text) {
  EXPECT_NE(message.find(text), std::string::npos)
      << '"' << message << "\" lacks \"" << text << '"';
}

class Failures : public Story {};

TEST_P(Failures, AVanishedRankIsNamedAndANewSetOfWorkersFormsTheJobAtOnce) {
  World& world = begin_ready(long_scenario(GetParam(), 4));
  world.run_for(2 * kMillisecond);
  ASSERT_FALSE(world.worker(2).done());
  world.worker(2).vanish();
  const Time vanished = world.now();
  finish(kMemberTimeout + kMargin);
  EXPECT_GT(world.now(), vanished + kMillisecond);
  for (const std::size_t rank : {0U, 1U, 3U}) {
    expect_failed(world.worker(rank), NATAGG_RANK_LOST);
    EXPECT_EQ(world.worker(rank).stream().failure().rank, 2);
    expect_mentions(world.worker(rank).stream().failure().message, "rank 2");
  }
  for (WorkerHost& host : world.workers()) host.vanish();
  const std::size_t first = add_workers(world, scenario_, 1, 2);
  const Time formed = world.now();
  ASSERT_TRUE(finish(30 * kSecond));
  if (scenario_.network.loss == 0.0) {
    EXPECT_LT(world.now() - formed, kSecond);
  }
  expect_right(scenario_, first);
}

TEST_P(Failures, RanksThatDisagreeOnTheLengthAreAllToldBothLengths) {
  Scenario scenario = long_scenario(GetParam(), 3);
  scenario.operations.resize(1);
  for (WorkerPlan& worker : scenario.workers) worker.submit_at.resize(1);
  Scenario other = scenario;
  other.operations[0].length = 60'001;
  World& world = begin(scenario);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const Scenario& mine = rank == 1 ? other : scenario;
    worker::StreamConfig config = stream_config(mine, rank, world.pool());
    config.instance = rank + 1;
    WorkerHost& host = world.add_worker(config, world.now());
    Job job;
    job.operation.length = mine.operations[0].length;
    job.input = input(mine, 0, rank);
    host.add_job(std::move(job));
  }
  finish(10 * kSecond);
  for (const WorkerHost& host : world.workers()) {
    expect_failed(host, NATAGG_MISMATCH);
    const std::string& message = host.stream().failure().message;
    expect_mentions(message, "rank 1");
    expect_mentions(message, "60000");
    expect_mentions(message, "60001");
  }
  expect_none(world.violations());
}

TEST_P(Failures, ARankThatNeverSubmitsIsNamedAtTheDeadline) {
  constexpr Time kDeadline = 4 * kSecond;
  Scenario scenario = long_scenario(GetParam(), 4);
  scenario.operations.resize(1);
  World& world = begin(scenario);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    worker::StreamConfig config = stream_config(scenario, rank, world.pool());
    config.instance = rank + 1;
    WorkerHost& host = world.add_worker(config, world.now());
    if (rank == 3) continue;
    Job job;
    job.operation.length = scenario.operations[0].length;
    job.input = input(scenario, 0, rank);
    job.deadline = kDeadline;
    host.add_job(std::move(job));
  }
  const Time begin = world.now();
  world.run_until([&] { return world.workers_done(); }, begin + kDeadline + kMargin);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const WorkerHost& host = world.worker(rank);
    ASSERT_TRUE(host.done());
    // The first rank to give up may take the others with it.
    const natagg_status status = host.stream().failure().status;
    EXPECT_TRUE(status == NATAGG_TIMED_OUT || status == NATAGG_RANK_LOST);
    EXPECT_GE(host.jobs()[0].ended, begin + kDeadline);
    EXPECT_EQ(host.stream().failure().rank, 3) << host.stream().failure().message;
    expect_mentions(host.stream().failure().message, "rank 3");
    if (status == NATAGG_TIMED_OUT) {
      expect_mentions(host.stream().failure().message, "values 0 to 1407");
    }
  }
  EXPECT_EQ(world.worker(0).stream().failure().status, NATAGG_TIMED_OUT);
  expect_none(world.violations());
}

TEST_P(Failures, ARankThatNeverComesEndsConnectingAtItsDeadline) {
  Scenario scenario = long_scenario(GetParam(), 3);
  World& world = begin(scenario);
  const Time deadline = world.now() + 3 * kSecond;
  for (const std::size_t rank : {0U, 2U}) {
    worker::StreamConfig config = stream_config(scenario, rank, world.pool());
    config.instance = rank + 1;
    config.connect_deadline = deadline;
    world.add_worker(config, world.now());
  }
  const auto failed = [](const WorkerHost& host) {
    return host.started() && host.stream().state() == worker::Stream::State::kFailed;
  };
  world.run_until([&] { return std::ranges::all_of(world.workers(), failed); }, deadline + kMargin);
  for (const WorkerHost& host : world.workers()) {
    ASSERT_TRUE(failed(host));
    EXPECT_EQ(host.stream().failure().status, NATAGG_TIMED_OUT);
    expect_mentions(host.stream().failure().message, "rank 1");
  }
  EXPECT_TRUE(world.run_until([&] { return world.aggregators_idle(); }, world.now() + 5 * kSecond));
}

TEST_P(Failures, ClosingWithAnOperationInFlightEndsItEverywhere) {
  World& world = begin_ready(long_scenario(GetParam(), 3));
  world.run_for(2 * kMillisecond);
  ASSERT_FALSE(world.worker(1).done());
  world.worker(1).close_at(world.now());
  finish(kMemberTimeout + kMargin);
  ASSERT_TRUE(world.workers_done());
  EXPECT_EQ(world.worker(1).jobs()[1].status, NATAGG_CLOSED);
  for (const std::size_t rank : {0U, 2U}) {
    expect_failed(world.worker(rank), NATAGG_RANK_LOST);
    if (scenario_.network.loss == 0.0) {
      EXPECT_EQ(world.worker(rank).stream().failure().rank, 1);
    }
  }
  for (const std::size_t rank : {0U, 2U}) world.worker(rank).close_when_done();
  EXPECT_TRUE(world.run_until([&] { return world.aggregators_idle(); }, world.now() + 5 * kSecond));
  expect_none(world.violations());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Failures, testing::Range<std::uint64_t>(0, story_seeds()));

}  // namespace
}  // namespace natagg::simulation
