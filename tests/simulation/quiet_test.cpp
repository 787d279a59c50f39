// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// On a network that loses nothing, natagg must not waste packets or time.
#include <gtest/gtest.h>

#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

Scenario clean_scenario(std::size_t world, std::uint64_t length, std::size_t operations) {
  Scenario scenario;
  scenario.seed = 7;
  scenario.operations.assign(operations, {.length = length});
  scenario.workers.resize(world);
  for (WorkerPlan& worker : scenario.workers) worker.submit_at.assign(operations, 0);
  return scenario;
}

void expect_clean(const Outcome& outcome) {
  for (const std::string& violation : outcome.violations) ADD_FAILURE() << violation;
}

TEST(Quiet, NothingIsSentTwiceWithoutLoss) {
  for (const std::size_t world : {1U, 4U, 9U}) {
    for (const bool multicast : {false, true}) {
      Scenario scenario = clean_scenario(world, 100'000, 3);
      scenario.aggregators = 2;
      scenario.multicast = multicast;
      const Outcome outcome = play(scenario);
      expect_clean(outcome);
      EXPECT_EQ(outcome.data_packets, world * 3 * ((100'000 + 1407) / 1408));
      EXPECT_EQ(outcome.retransmissions, 0U);
      EXPECT_EQ(outcome.duplicate_results, 0U);
      if (!multicast) {
        EXPECT_EQ(outcome.multicast, 0U);
      } else if (world > 1) {
        EXPECT_GE(outcome.multicast, outcome.data_packets / world);
      }
    }
  }
}

TEST(Quiet, UnicastReplacesMulticastThatNobodyDelivers) {
  Scenario scenario = clean_scenario(4, 50'000, 1);
  scenario.multicast = true;
  scenario.network.multicast = false;
  const Outcome outcome = play(scenario);
  expect_clean(outcome);
  EXPECT_LE(outcome.multicast, 12U);  // probes
  EXPECT_EQ(outcome.retransmissions, 0U);
}

TEST(Quiet, ARankThatMulticastStopsReachingIsSoonServedByUnicast) {
  Scenario scenario = clean_scenario(3, 1'000'000, 1);
  scenario.multicast = true;
  for (WorkerPlan& worker : scenario.workers) worker.window = 32;
  World world(scenario.network, scenario.seed);
  add_aggregators(world, scenario);
  add_workers(world, scenario);
  const auto results = [&](std::size_t rank) {
    return world.worker(rank).started() ? world.worker(rank).stream().stats().result_packets : 0;
  };
  ASSERT_TRUE(world.run_until([&] { return results(1) >= 200; }, 10 * kSecond));
  world.network().deafen(world.worker(1).self());
  ASSERT_TRUE(world.run_until([&] { return world.workers_done(); }, 30 * kSecond));
  for (const std::string& violation : check_results(world, scenario, 0)) ADD_FAILURE() << violation;
  const worker::StreamStats& stats = world.worker(1).stream().stats();
  EXPECT_EQ(stats.result_packets, (1'000'000U + 1407) / 1408);
  EXPECT_GE(stats.multicast_results, 200U);
  EXPECT_LT(stats.multicast_results, 250U);
  // A few windows, where about 500 chunks were still to come.
  EXPECT_GT(stats.retransmissions, 0U);
  EXPECT_LT(stats.retransmissions, 150U);
}

TEST(Quiet, APausedRankCausesHardlyAnyRetransmission) {
  Scenario scenario = clean_scenario(4, 1'500'000, 2);
  scenario.network.delay = 200 * kMicrosecond;
  const Outcome undisturbed = play(scenario);
  scenario.workers[1].pause_from = undisturbed.duration / 2;
  scenario.workers[1].pause_to = scenario.workers[1].pause_from + 200 * kMillisecond;
  const Outcome outcome = play(scenario);
  expect_clean(outcome);
  EXPECT_GT(outcome.duration, undisturbed.duration + 150 * kMillisecond);
  EXPECT_LT(outcome.retransmissions * 100, outcome.data_packets)
      << outcome.retransmissions << " of " << outcome.data_packets;
}

TEST(Quiet, ALateRankCausesHardlyAnyRetransmission) {
  Scenario scenario = clean_scenario(3, 1'000'000, 1);
  scenario.workers[2].submit_at = {800 * kMillisecond};
  const Outcome outcome = play(scenario);
  expect_clean(outcome);
  EXPECT_LT(outcome.retransmissions * 100, outcome.data_packets)
      << outcome.retransmissions << " of " << outcome.data_packets;
}

TEST(Quiet, AWindowOfManyPacketsHidesTheRoundTrip) {
  Scenario scenario = clean_scenario(2, 1'408 * 2'560, 1);
  scenario.network.delay = kMillisecond;
  scenario.network.jitter = 0;
  const Outcome outcome = play(scenario);
  expect_clean(outcome);
  // 2,560 packets, 256 a round trip of 2 ms, after a slow start and joining.
  EXPECT_LT(outcome.duration, 200 * kMillisecond);
}

TEST(Quiet, ManySmallOperationsAtOnceShareTheirRoundTrips) {
  constexpr std::size_t kOperations = 1'000;
  Scenario scenario = clean_scenario(4, 3, kOperations);
  scenario.network.delay = kMillisecond;
  scenario.network.jitter = 0;
  const Outcome outcome = play(scenario);
  expect_clean(outcome);
  EXPECT_EQ(outcome.data_packets, 4 * kOperations);
  // One after the other they would take 2 s.
  EXPECT_LT(outcome.duration, 100 * kMillisecond);
}

}  // namespace
}  // namespace natagg::simulation
