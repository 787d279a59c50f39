// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The same job gives the same bits in every layout: that is what makes a run reproducible.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

/// A clean job of `world` ranks with lengths around every packet size in use.
Scenario base_scenario(std::size_t world) {
  Scenario scenario;
  scenario.seed = 42;
  scenario.first_sequence = 0xFFFF'FFF0;
  for (const std::uint64_t length : {0U, 1U, 1'407U, 1'408U, 1'409U, 20'000U}) {
    scenario.operations.push_back(
        {.length = length,
         .reduction = length % 2 == 0 ? proto::Reduction::kSum : proto::Reduction::kAverage,
         .values = length == 1408 ? Values::kAnyBits : Values::kGradients});
  }
  scenario.workers.resize(world);
  for (WorkerPlan& worker : scenario.workers) {
    worker.submit_at.assign(scenario.operations.size(), 0);
  }
  return scenario;
}

std::vector<std::uint32_t> bits(const Outcome& outcome) {
  std::vector<std::uint32_t> all;
  for (const std::vector<float>& result : outcome.results) {
    for (const float value : result) all.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return all;
}

void set_mtu(Scenario& scenario, std::size_t mtu) {
  for (WorkerPlan& worker : scenario.workers) worker.mtu = worker.path_mtu = mtu;
}

TEST(Layouts, SameBitsForAnyAggregatorsShardsLanesPacketSizeWindowAndLoss) {
  for (const std::size_t world : {1U, 2U, 3U, 4U, 8U, 9U}) {
    const std::vector<std::uint32_t> expected = bits(play(base_scenario(world)));
    ASSERT_EQ(expected.size(), 24'225U);
    for (const std::uint16_t aggregators : {std::uint16_t{1}, std::uint16_t{2}}) {
      for (const std::uint16_t shards : {std::uint16_t{1}, std::uint16_t{2}}) {
        for (const std::size_t mtu : {300U, 1500U, 9000U}) {
          for (const double loss : {0.0, 0.05}) {
            Scenario scenario = base_scenario(world);
            scenario.aggregators = aggregators;
            scenario.shards = shards;
            scenario.network.loss = loss;
            scenario.multicast = loss == 0.0;
            set_mtu(scenario, mtu);
            for (std::size_t rank = 0; rank < world; ++rank) {
              scenario.workers[rank].window = mtu == 1500 ? 4 : 256;
              scenario.workers[rank].lanes = static_cast<std::uint16_t>(1 + rank % 3);
            }
            const Outcome outcome = play(scenario);
            EXPECT_TRUE(outcome.violations.empty())
                << outcome.violations[0] << " in " << to_string(scenario);
            EXPECT_EQ(bits(outcome), expected) << to_string(scenario);
          }
        }
      }
    }
  }
}

TEST(Layouts, SameBitsForEveryKernel) {
  const std::vector<std::uint32_t> expected = bits(play(base_scenario(3)));
  for (const Kernels& kernels : all_kernels()) {
    if (!kernels.supported()) continue;
    Scenario scenario = base_scenario(3);
    scenario.aggregator_kernels = kernels.name;
    for (WorkerPlan& worker : scenario.workers) worker.kernels = kernels.name;
    EXPECT_EQ(bits(play(scenario)), expected) << kernels.name;
  }
}

TEST(Layouts, AnotherJobSeedGivesOtherBits) {
  Scenario scenario = base_scenario(2);
  const Outcome one = play(scenario);
  scenario.rounding = proto::Rounding::kNearest;
  const Outcome nearest = play(scenario);
  EXPECT_NE(bits(one), bits(nearest));
}

}  // namespace
}  // namespace natagg::simulation
