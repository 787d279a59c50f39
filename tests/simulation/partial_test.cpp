// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Jobs that do not wait for stragglers: whoever is late, whatever is lost, and also when the
// aggregator is, all ranks hold the same bits, which are those of the ranks that a packet named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

Scenario straggling_scenario(std::uint64_t seed, std::size_t world, std::uint16_t aggregators,
                             Time longest_pause) {
  Random random(seed + 500);
  Scenario scenario;
  scenario.seed = seed;
  scenario.network.loss = random.pick({0.0, 0.0, 0.02, 0.05});
  scenario.network.delay = random.pick({100, 400}) * kMicrosecond;
  scenario.network.duplication = random.pick({0.0, 0.05});
  scenario.network.reordering = random.pick({0.0, 0.05});
  scenario.aggregators = aggregators;
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.multicast = random.chance(0.5);
  scenario.first_sequence = random.pick<std::uint32_t>({0, 0xFFFF'FFF0});
  scenario.one_at_a_time = random.chance(0.5);
  scenario.authenticated = random.chance(0.3);
  scenario.straggler_deadline = random.pick<Time>({5, 20, 50}) * kMillisecond;
  scenario.quorum = random.pick<std::uint16_t>({0, 1, 2});
  scenario.values = 128;
  scenario.operations.resize(static_cast<std::size_t>(random.between(3, 12)));
  for (OperationPlan& operation : scenario.operations) {
    operation.length = random.below(4'000);
    operation.in_place = random.chance(0.5);
    operation.values = random.pick({Values::kGradients, Values::kSpecials});
    operation.reduction = random.pick({proto::Reduction::kPartialSum, proto::Reduction::kPartialSum,
                                       proto::Reduction::kPartialAverage, proto::Reduction::kSum});
  }
  scenario.workers.resize(world);
  const auto window = random.pick<std::uint16_t>({1, 4, 16, 64});
  for (WorkerPlan& worker : scenario.workers) {
    worker.window = window;
    worker.in_flight = 64;
    Time time = 0;
    for (std::size_t i = 0; i < scenario.operations.size(); ++i) {
      time += random.between(0, 20 * kMillisecond);
      worker.submit_at.push_back(time);
    }
    if (random.chance(0.5)) {
      worker.pause_from = random.between(100, 300) * kMillisecond;
      worker.pause_to = worker.pause_from + random.between(20 * kMillisecond, longest_pause);
    }
  }
  draw_lanes(scenario);
  return scenario;
}

class Stragglers : public testing::TestWithParam<std::uint64_t> {
 protected:
  void start(std::size_t ranks, std::uint16_t aggregators, Time longest_pause = kSecond) {
    scenario_ = straggling_scenario(GetParam(), ranks, aggregators, longest_pause);
    begin();
  }

  void begin() {
    world_.emplace(scenario_.network, scenario_.seed);
    answers_.emplace(*world_, scenario_.workers.size());
    add_aggregators(*world_, scenario_);
    add_workers(*world_, scenario_);
  }

  bool finish(Time limit) {
    return world_->run_until([&] { return world_->workers_done(); }, world_->now() + limit);
  }

  std::uint64_t count(aggregator::Counter counter) {
    std::uint64_t sum = 0;
    for (const AggregatorHost& host : world_->aggregators()) sum += host.count(counter);
    return sum;
  }

  /// Every operation has ended well, with the same bits on all ranks: for each chunk those of the
  /// ranks that its answer names, or where an aggregator was lost, that one of its answers names.
  void expect_right(bool aggregators_were_lost) {
    EXPECT_TRUE(aggregators_were_lost || !answers_->contradictory());
    for (const std::string& violation : check_results(*world_, scenario_, 0, false, &*answers_)) {
      ADD_FAILURE() << violation;
    }
    for (const std::string& violation : world_->violations()) ADD_FAILURE() << violation;
  }

  void expect_closes() {
    for (WorkerHost& host : world_->workers()) host.close_when_done();
    const auto over = [&] {
      return world_->workers_closed() &&
             std::ranges::all_of(world_->aggregators(), [](const AggregatorHost& host) {
               return !host.alive() || host.idle();
             });
    };
    EXPECT_TRUE(world_->run_until(over, world_->now() + 10 * kSecond)) << "something is left";
  }

  Scenario scenario_;
  std::optional<World> world_;
  std::optional<Answers> answers_;
};

TEST_P(Stragglers, AllRanksGetTheBitsOfTheRanksThatTheAnswersName) {
  start(2 + GetParam() % 4, static_cast<std::uint16_t>(1 + GetParam() % 2));
  ASSERT_TRUE(finish(60 * kSecond));
  expect_right(false);
  expect_closes();
}

TEST_P(Stragglers, WhoIsThereIsDoneInTimeAndWhoWasAwayCatchesUp) {
  start(4, 1);
  scenario_.operations.assign(2, {.length = 1'000, .reduction = proto::Reduction::kPartialSum});
  for (WorkerPlan& worker : scenario_.workers) {
    worker.submit_at.assign(2, 600 * kMillisecond);
    worker.window = 16;
    worker.pause_from = worker.pause_to = kNever;
  }
  scenario_.quorum = 0;
  scenario_.workers[2].pause_from = 590 * kMillisecond;
  scenario_.workers[2].pause_to = 1'400 * kMillisecond;
  begin();
  const Time begin = world_->now();
  ASSERT_TRUE(finish(30 * kSecond));
  expect_right(false);
  for (const WorkerHost& host : world_->workers()) {
    const Job& last = host.jobs().back();
    if (host.config().rank == 2) {
      EXPECT_GE(last.ended, begin + 1'400 * kMillisecond);
      continue;
    }
    if (scenario_.network.loss > 0) continue;  // what is lost is sent again, which takes its time
    EXPECT_LT(last.ended, begin + 700 * kMillisecond + 2 * scenario_.straggler_deadline);
    EXPECT_EQ(last.partial.missing[0], 0b0100U);
    EXPECT_EQ(last.partial.least_ranks, 3);
    EXPECT_NEAR(last.partial.variance_inflation, 4.0 / 3.0, 1e-12);
  }
  EXPECT_GT(count(aggregator::Counter::kPartialResults), 0U);
  expect_closes();
}

TEST_P(Stragglers, ARestartedAggregatorGivesNobodyOtherBits) {
  start(3, 1);
  Random random(GetParam() + 99);
  std::uint32_t epoch = 1'000;
  for (int restarts = 0; restarts < 3; ++restarts) {
    world_->run_for(static_cast<Time>(random.below(250 * kMillisecond)));
    AggregatorHost& host = world_->aggregator(0);
    // Some ranks hear the last answers, and others do not.
    const std::size_t deaf = random.below(3);
    world_->network().cut(host.first().address, world_->worker(deaf).self().address);
    world_->run_for(static_cast<Time>(random.below(120 * kMillisecond)));
    host.vanish();
    world_->run_for(static_cast<Time>(random.below(300 * kMillisecond)));
    host.restart(world_->now(), epoch += 1'000);
    world_->network().heal();
  }
  ASSERT_TRUE(finish(60 * kSecond));
  expect_right(true);
  expect_closes();
}

TEST_P(Stragglers, AnAggregatorThatSomeRanksStillReachGivesNobodyOtherBits) {
  // A pause and the time until the cut is noticed are less than the member time-out.
  start(3, 2, 300 * kMillisecond);
  Random random(GetParam() + 999);
  world_->run_for(300 * kMillisecond + static_cast<Time>(random.below(200 * kMillisecond)));
  // Both sides of the cut could go on with those they have.
  world_->network().cut_both_ways(world_->worker(random.below(3)).self().address,
                                  world_->aggregator(random.below(2)).first().address);
  ASSERT_TRUE(finish(60 * kSecond));
  expect_right(true);
  expect_closes();
}

TEST(PartialSums, AverageToTheExactSumWhenAnyRankIsAsLikelyToBeLate) {
  constexpr std::size_t kWorld = 4;
  constexpr std::size_t kElements = 64;
  constexpr int kRounds = 1'500;
  std::vector<double> exact(kElements);
  std::vector<double> total(kElements);
  std::vector<double> squares(kElements);
  std::vector<std::vector<float>> inputs(kWorld, std::vector<float>(kElements));
  Random random(4);
  for (std::vector<float>& values : inputs) {
    for (std::size_t i = 0; i < kElements; ++i) {
      values[i] = static_cast<float>(random.unit() * 2 - 1);
      exact[i] += double{values[i]};
    }
  }
  std::uint64_t partial_chunks = 0;
  for (int round = 0; round < kRounds; ++round) {
    World world({}, static_cast<std::uint64_t>(round));
    world.add_aggregator({}, 1);
    const std::size_t late = random.below(kWorld);
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
      worker::StreamConfig config;
      config.aggregators = world.pool();
      config.rank = static_cast<std::uint16_t>(rank);
      config.world = kWorld;
      config.seed = static_cast<std::uint64_t>(round);
      config.instance = rank + 1;
      config.straggler_deadline = 10 * kMillisecond;
      Job job;
      job.operation = {.length = kElements, .reduction = proto::Reduction::kPartialSum};
      job.input = inputs[rank];
      job.submit_at = world.now() + 200 * kMillisecond + (rank == late ? 100 * kMillisecond : 0);
      world.add_worker(config, world.now()).add_job(std::move(job));
    }
    ASSERT_TRUE(world.run_until([&] { return world.workers_done(); }, world.now() + kSecond));
    const Job& job = world.worker(0).jobs()[0];
    ASSERT_EQ(job.partial.missing[0], std::uint64_t{1} << late);
    partial_chunks += job.partial.partial_chunks;
    for (std::size_t i = 0; i < kElements; ++i) {
      total[i] += double{job.output[i]};
      squares[i] += double{job.output[i]} * double{job.output[i]};
    }
  }
  EXPECT_EQ(partial_chunks, std::uint64_t{kRounds});
  double worst = 0;
  double chi = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const double mean = total[i] / kRounds;
    const double variance = squares[i] / kRounds - mean * mean;
    const double error = (mean - exact[i]) / std::sqrt(variance / kRounds);
    worst = std::max(worst, std::abs(error));
    chi += error * error;
  }
  EXPECT_LT(worst, 4.5);
  // 64 degrees of freedom: the mean is 64, the standard deviation 11.3.
  EXPECT_LT(chi, 64 + 5 * 11.3);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Stragglers, testing::Range<std::uint64_t>(0, story_seeds()));

}  // namespace
}  // namespace natagg::simulation
