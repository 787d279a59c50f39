// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Aggregators that restart or die in the middle: the same ranks go on where they were, with the
// same bits, or all hear why they cannot; nobody else gets in.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulation/story.hpp"

namespace natagg::simulation {
namespace {

constexpr Time kAggregatorTimeout = 5 * kSecond;  // StreamConfig's defaults
constexpr Time kRejoinTimeout = 1'500 * kMillisecond;
constexpr Time kMargin = 500 * kMillisecond;

/// A few all-reduces in place, each begun when the one before has ended, so that what a rank has
/// sent is soon overwritten.
Scenario running_scenario(std::uint64_t seed, std::size_t world, std::uint16_t aggregators) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.network.loss = random.pick({0.0, 0.01, 0.05});
  scenario.network.delay = random.pick({200, 400}) * kMicrosecond;
  scenario.network.duplication = random.pick({0.0, 0.02});
  scenario.network.reordering = random.pick({0.0, 0.02});
  scenario.aggregators = aggregators;
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.multicast = random.chance(0.5);
  scenario.first_sequence = random.pick<std::uint32_t>({0, 0xFFFF'FFF0});
  scenario.one_at_a_time = random.chance(0.7);
  scenario.authenticated = seed % 2 == 1;
  const std::uint64_t length = random.pick<std::uint64_t>({3'000, 150'000});
  scenario.operations.assign(length > 10'000 ? 2 : 60, {.length = length, .in_place = true});
  scenario.workers.resize(world);
  for (WorkerPlan& worker : scenario.workers) {
    worker.submit_at.assign(scenario.operations.size(), 0);
    worker.window = random.pick<std::uint16_t>({1, 4, 16});
    worker.in_flight = 32;
  }
  draw_lanes(scenario);
  return scenario;
}

class Recovery : public Story {
 protected:
  void start(std::size_t ranks, std::uint16_t aggregators) {
    begin_ready(running_scenario(GetParam(), ranks, aggregators));
    world_->run_for(static_cast<Time>(random_.below(2 * kMillisecond)));
    ASSERT_FALSE(world_->workers_done());
  }

  void cut(std::size_t rank, std::size_t aggregator) {
    world_->network().cut_both_ways(world_->worker(rank).self().address,
                                    world_->aggregator(aggregator).first().address);
  }

  /// Everything ended well, and closes leaving nothing behind.
  void expect_right_and_closed() {
    expect_right(scenario_, 0);
    for (WorkerHost& host : world_->workers()) host.close_when_done();
    const auto over = [&] {
      return world_->workers_closed() &&
             std::ranges::all_of(world_->aggregators(), [](const AggregatorHost& host) {
               return !host.alive() || host.idle();
             });
    };
    EXPECT_TRUE(run_until(over, 10 * kSecond)) << "something is left behind";
    expect_none(world_->violations());
  }

  Random random_{GetParam() + 77};
};

TEST_P(Recovery, ARestartedAggregatorIsJoinedAgainAndTheOperationGoesOn) {
  start(3, 1);
  std::uint32_t epoch = 1'000;
  for (int restarts = 0; restarts < 3; ++restarts) {
    AggregatorHost& host = world_->aggregator(0);
    host.vanish();
    world_->run_for(static_cast<Time>(random_.below(800 * kMillisecond)));
    host.restart(world_->now(), epoch += 1'000);
    world_->run_for(static_cast<Time>(random_.below(400 * kMillisecond)));
  }
  ASSERT_TRUE(finish(20 * kSecond));
  expect_right_and_closed();
}

TEST_P(Recovery, WhatARankHasFinishedAndOverwrittenIsStillSentForTheOthers) {
  start(3, 1);
  // Rank 1 hears nothing more of the aggregator, so the others are ahead of it.
  world_->network().cut(world_->aggregator(0).first().address, world_->worker(1).self().address);
  world_->run_for(300 * kMillisecond);
  world_->aggregator(0).restart(world_->now(), 1'000);
  world_->network().heal();
  ASSERT_TRUE(finish(20 * kSecond));
  expect_right_and_closed();
  std::uint64_t resumed = 0;
  for (const WorkerHost& host : world_->workers()) {
    resumed += host.stream().stats().resumed_sessions;
  }
  EXPECT_GT(resumed, 0U);
}

TEST_P(Recovery, AnAggregatorThatStaysAwayIsNamed) {
  start(3, 1);
  world_->aggregator(0).vanish();
  const Time since = world_->now();
  finish(kAggregatorTimeout + kMargin);
  for (const WorkerHost& host : world_->workers()) {
    if (host.done() && host.jobs().back().status == NATAGG_OK) continue;
    ASSERT_TRUE(host.done()) << "rank " << host.config().rank << " still waits";
    EXPECT_EQ(host.stream().failure().status, NATAGG_AGGREGATOR_LOST);
    EXPECT_NE(host.stream().failure().message.find("10.0.0.1"), std::string::npos);
    EXPECT_GE(world_->now(), since + kAggregatorTimeout - kMargin);
  }
}

TEST_P(Recovery, ARankThatIsLostWithTheAggregatorIsNamed) {
  start(3, 1);
  world_->worker(2).vanish();
  world_->aggregator(0).restart(world_->now(), 1'000);
  finish(kRejoinTimeout + 2 * kMargin);
  for (const std::size_t rank : {0U, 1U}) {
    const WorkerHost& host = world_->worker(rank);
    if (host.done() && host.jobs().back().status == NATAGG_OK) continue;
    ASSERT_TRUE(host.done()) << "rank " << rank << " still waits";
    EXPECT_EQ(host.stream().failure().status, NATAGG_RANK_LOST);
    EXPECT_EQ(host.stream().failure().rank, 2) << host.stream().failure().message;
  }
}

TEST_P(Recovery, ARankThatRestartsWithTheAggregatorDoesNotSlipIntoTheResumedSession) {
  start(3, 1);
  const std::optional<natagg_status> last = world_->worker(2).jobs().back().status;
  world_->worker(2).vanish();
  world_->aggregator(0).restart(world_->now(), 1'000);
  worker::StreamConfig config = stream_config(scenario_, 2, world_->pool());
  config.job = 1;
  config.instance = 4'711;
  config.connect_deadline = world_->now() + 8 * kSecond;
  WorkerHost& newcomer = world_->add_worker(config, world_->now());
  finish(10 * kSecond);
  for (const std::size_t rank : {0U, 1U}) {
    const WorkerHost& host = world_->worker(rank);
    ASSERT_TRUE(host.done()) << "rank " << rank << " still waits";
    if (last == NATAGG_OK) continue;
    EXPECT_NE(host.stream().state(), worker::Stream::State::kReady);
    EXPECT_NE(host.jobs().back().status, NATAGG_OK);
  }
  EXPECT_FALSE(newcomer.started() && newcomer.stream().state() == worker::Stream::State::kReady);
}

TEST_P(Recovery, APausedAggregatorForgetsNobody) {
  start(3, 1);
  world_->aggregator(0).pause(world_->now() + 3 * kSecond);
  ASSERT_TRUE(finish(20 * kSecond));
  expect_right_and_closed();
  EXPECT_EQ(world_->aggregator(0).count(aggregator::Counter::kResumedSessions), 0U);
}

TEST_P(Recovery, TheChunksOfADeadAggregatorMoveToTheLivingWithinTwoSeconds) {
  const auto pool = static_cast<std::uint16_t>(2 + GetParam() % 2);
  start(3, pool);
  const std::size_t victim = random_.below(pool);
  world_->aggregator(victim).vanish();
  EXPECT_TRUE(finish(2 * kSecond + (scenario_.network.loss > 0 ? 3 * kSecond : 0)));
  expect_right_and_closed();
}

TEST_P(Recovery, ADeadAggregatorsPlaceMovesOnWhenItsSubstituteDies) {
  start(3, 3);
  const std::size_t first = random_.below(3);
  world_->aggregator(first).vanish();
  world_->run_for(1'200 * kMillisecond + static_cast<Time>(random_.below(kSecond)));
  const std::size_t second = (first + 1 + random_.below(2)) % 3;
  world_->aggregator(second).vanish();
  if (random_.chance(0.5)) world_->aggregator(first).restart(world_->now(), 5'000);
  EXPECT_TRUE(finish(10 * kSecond));
  expect_right_and_closed();
}

TEST_P(Recovery, ARankThatLosesItsWayToOneAggregatorPullsTheOthersAlong) {
  start(3, 2);
  cut(1, 0);
  EXPECT_TRUE(finish(5 * kSecond));
  expect_right_and_closed();
}

TEST_P(Recovery, RanksThatReachDifferentAggregatorsOnlyAllGetAnError) {
  start(3, 2);
  cut(0, 0);
  cut(1, 1);
  EXPECT_TRUE(finish(kAggregatorTimeout + kRejoinTimeout + kMargin));
  for (const WorkerHost& host : world_->workers()) {
    ASSERT_TRUE(host.done()) << "rank " << host.config().rank << " still waits";
  }
  expect_none(world_->violations());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Recovery, testing::Range<std::uint64_t>(0, story_seeds()));

}  // namespace
}  // namespace natagg::simulation
