// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/shrink.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

using Fails = std::function<bool(const Scenario&)>;

Shrunk<Scenario> least(const Scenario& scenario, const Fails& fails, int most_plays = kMostPlays) {
  return shrink<Scenario>(scenario, simplifications, fails, most_plays);
}

/// What every scenario becomes that may be as simple as it likes.
Scenario simplest(std::uint64_t seed) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.operations.resize(1);
  scenario.workers.resize(1);
  scenario.workers[0].submit_at = {0};
  return scenario;
}

TEST(Shrink, OfWhatFailsAnywayIsTheSimplestScenario) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto shrunk = least(draw(seed), [](const Scenario&) { return true; });
    ASSERT_EQ(shrunk.story, simplest(seed)) << to_string(shrunk.story);
  }
}

TEST(Shrink, KeepsWhatTheFailureNeedsAndNothingElse) {
  const auto fails = [](const Scenario& scenario) {
    return scenario.workers.size() >= 2 && scenario.network.loss > 0 &&
           std::ranges::any_of(scenario.operations,
                               [](const OperationPlan& plan) { return plan.length > 100; });
  };
  int found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Scenario scenario = draw(seed);
    if (!fails(scenario)) continue;
    ++found;
    const auto shrunk = least(scenario, fails);
    Scenario expected = simplest(seed);
    expected.network.loss = scenario.network.loss;
    expected.operations[0].length = 101;
    expected.workers.resize(2, expected.workers[0]);
    ASSERT_EQ(shrunk.story, expected) << to_string(shrunk.story);
    EXPECT_LT(shrunk.plays, kMostPlays);
  }
  EXPECT_GT(found, 40);
}

TEST(Shrink, FindsTheOneRankOfManyThatMatters) {
  Scenario scenario = simplest(1);
  scenario.operations.assign(7, {.length = 5'000, .values = Values::kHuge, .in_place = true});
  scenario.workers.assign(9, scenario.workers[0]);
  for (WorkerPlan& worker : scenario.workers) {
    worker.start = kSecond;
    worker.submit_at.assign(7, 3 * kSecond);
    worker.window = 4;
  }
  scenario.workers[4].pause_from = 5;
  scenario.workers[4].pause_to = 6;
  scenario.operations[3].reduction = proto::Reduction::kAverage;
  const auto shrunk = least(scenario, [](const Scenario& tried) {
    return std::ranges::any_of(tried.workers,
                               [](const WorkerPlan& plan) { return plan.pause_from == 5; }) &&
           std::ranges::any_of(tried.operations, [](const OperationPlan& plan) {
             return plan.reduction == proto::Reduction::kAverage && plan.values == Values::kHuge;
           });
  });
  Scenario expected = simplest(1);
  expected.workers[0].pause_from = 5;
  expected.workers[0].pause_to = 6;
  expected.operations[0].reduction = proto::Reduction::kAverage;
  expected.operations[0].values = Values::kHuge;
  EXPECT_EQ(shrunk.story, expected) << to_string(shrunk.story);
}

TEST(Shrink, LetsNobodyComeLaterAfterTheFirstThanBefore) {
  const auto lateness = [](const Scenario& scenario) {
    Time latest = 0;
    for (std::size_t i = 0; i < scenario.operations.size(); ++i) {
      const auto [first, last] = std::ranges::minmax(
          scenario.workers, {}, [i](const WorkerPlan& worker) { return worker.submit_at[i]; });
      latest = std::max(latest, last.submit_at[i] - first.submit_at[i]);
    }
    return latest;
  };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Scenario scenario = draw(seed);
    const Time before = lateness(scenario);
    static_cast<void>(least(scenario, [&](const Scenario& tried) {
      EXPECT_LE(lateness(tried), before) << to_string(tried);
      for (const WorkerPlan& worker : tried.workers) {
        EXPECT_EQ(worker.submit_at.size(), tried.operations.size());
        EXPECT_TRUE(std::ranges::is_sorted(worker.submit_at));
      }
      EXPECT_LE(tried.quorum, tried.workers.size());
      return (tried.seed + tried.workers.size() + tried.operations.size()) % 3 != 0;
    }));
  }
}

TEST(Shrink, OfSomethingPlayedStillShowsItAndIsTheSameEachTime) {
  const Fails sends_again = [](const Scenario& scenario) {
    return play(scenario).retransmissions > 0;
  };
  std::uint64_t seed = 0;
  while (!sends_again(draw(seed))) ++seed;
  const Scenario scenario = draw(seed);
  const auto shrunk = least(scenario, sends_again, 100);
  const Outcome outcome = play(shrunk.story);
  EXPECT_GT(outcome.retransmissions, 0U) << to_string(shrunk.story);
  EXPECT_TRUE(outcome.violations.empty()) << to_string(shrunk.story);
  EXPECT_LT(outcome.data_packets, play(scenario).data_packets);
  EXPECT_EQ(least(scenario, sends_again, 100).story, shrunk.story);
}

TEST(Shrink, StopsAfterItsPlaysWithWhatItHas) {
  const Scenario scenario = draw(3);
  for (const int most : {0, 1, 10, 40}) {
    int played = 0;
    const auto shrunk = least(
        scenario,
        [&played](const Scenario&) {
          ++played;
          return true;
        },
        most);
    EXPECT_LE(played, most);
    EXPECT_EQ(shrunk.plays, played);
    EXPECT_EQ(shrunk.story == scenario, most == 0);
  }
}

}  // namespace
}  // namespace natagg::simulation
