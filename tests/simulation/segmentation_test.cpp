// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Ranks that send several datagrams as one packet, on paths that cut them up, do not, or stop to.
#include <gtest/gtest.h>

#include "simulation/story.hpp"

namespace natagg::simulation {
namespace {

using worker::Segmentation;

Scenario segmenting_scenario(std::uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.aggregators = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.authenticated = seed % 2 == 1;
  scenario.one_at_a_time = random.chance(0.5);
  const std::uint64_t length = random.pick<std::uint64_t>({15'000, 400'000});
  scenario.operations.assign(length > 100'000 ? 2 : 40, {.length = length, .in_place = true});
  scenario.workers.resize(static_cast<std::size_t>(random.between(1, 4)));
  for (WorkerPlan& worker : scenario.workers) {
    worker.submit_at.assign(scenario.operations.size(), 0);
    worker.window = random.pick<std::uint16_t>({16, 64, 256});
    worker.segments = true;
  }
  return scenario;
}

class Segmenting : public Story {
 protected:
  Segmentation segmentation(std::size_t rank) {
    return world_->worker(rank).stream().stats().segmentation;
  }
};

TEST_P(Segmenting, IsFoundToWorkBeforeTheFirstChunkAndLosesNothing) {
  begin_ready(segmenting_scenario(GetParam()));
  ASSERT_TRUE(finish(10 * kSecond));
  expect_right(scenario_, 0);
  for (std::size_t rank = 0; rank < scenario_.workers.size(); ++rank) {
    EXPECT_EQ(segmentation(rank), Segmentation::kCarried) << rank;
    EXPECT_EQ(world_->worker(rank).stream().stats().retransmissions, 0U) << rank;
  }
}

TEST_P(Segmenting, IsFoundNotToWorkWithoutLosingAChunk) {
  Scenario scenario = segmenting_scenario(GetParam());
  for (WorkerPlan& worker : scenario.workers) worker.path_cuts = false;
  begin_ready(std::move(scenario));
  ASSERT_TRUE(finish(10 * kSecond));
  expect_right(scenario_, 0);
  for (std::size_t rank = 0; rank < scenario_.workers.size(); ++rank) {
    EXPECT_NE(segmentation(rank), Segmentation::kCarried) << rank;
    EXPECT_EQ(world_->worker(rank).stream().stats().retransmissions, 0U) << rank;
  }
}

TEST_P(Segmenting, EndsSoonAfterAPathStopsToCutPacketsUp) {
  begin_ready(segmenting_scenario(GetParam()));
  world_->run_for(static_cast<Time>(Random(GetParam()).below(kMillisecond)));
  for (const WorkerHost& host : world_->workers()) {
    world_->network().leave_whole(host.self().address);
  }
  ASSERT_TRUE(finish(10 * kSecond));
  expect_right(scenario_, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Segmenting, testing::Range<std::uint64_t>(0, story_seeds()));

}  // namespace
}  // namespace natagg::simulation
