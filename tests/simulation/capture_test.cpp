// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the aggregators of a scenario receive and send, as a trace that natagg-replay plays.
#include <gtest/gtest.h>

#include "simulation/play.hpp"
#include "tools/trace/shard_replay.hpp"
#include "trace/capture_file.hpp"

namespace natagg::simulation {
namespace {

using aggregator::Counter;

TEST(Capture, OfASeedReplaysWithTheSameResults) {
  const testing::TemporaryPath path("seed.pcap");
  std::uint64_t answers = 0;
  std::uint64_t sessions = 0;
  for (std::uint64_t seed = 0; seed < story_seeds(); ++seed) {
    Scenario scenario = draw(seed);
    scenario.authenticated = false;   // which no replay can take
    scenario.straggler_deadline = 0;  // likewise
    const Outcome outcome = play(scenario, {.trace_path = path.string()});
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(scenario));
    ASSERT_TRUE(outcome.violations.empty());
    const tools::TraceSurvey survey(path.string());
    const tools::ReplayReport report = tools::replay_into_shards(survey, {}, 1);
    EXPECT_TRUE(report.good(survey)) << tools::to_text(survey, report);
    EXPECT_EQ(report.answers.right, survey.complete_chunks());
    EXPECT_EQ(survey.recorded().unchecked, 0U);
    answers += report.answers.right;
    sessions += survey.sessions().size();
  }
  EXPECT_GT(answers, 5 * story_seeds());
  EXPECT_GT(sessions, story_seeds());
}

TEST(Capture, OfPartialResultsIsRefusedWithThePacketAndThatOfTheJobsOtherOperationsReplays) {
  const testing::TemporaryPath path("partial.pcap");
  Scenario scenario;
  scenario.straggler_deadline = 20 * kMillisecond;
  scenario.operations.assign(2, {.length = 10'000});
  scenario.workers.resize(3);
  for (WorkerPlan& worker : scenario.workers) worker.submit_at.assign(2, 0);
  ASSERT_TRUE(play(scenario, {.trace_path = path.string()}).violations.empty());
  const tools::TraceSurvey survey(path.string());
  const tools::ReplayReport report = tools::replay_into_shards(survey, {}, 1);
  EXPECT_TRUE(report.good(survey)) << tools::to_text(survey, report);
  EXPECT_EQ(report.answers.right, 2 * 8U);  // chunks of 1,408 values

  scenario.operations[1].reduction = proto::Reduction::kPartialAverage;
  ASSERT_TRUE(play(scenario, {.trace_path = path.string()}).violations.empty());
  try {
    const tools::TraceSurvey refused(path.string());
    ADD_FAILURE() << "it is not refused";
  } catch (const tools::TraceError& error) {
    const std::string why = error.what();
    EXPECT_NE(why.find("is of a partial average of 10000 float32 of job 1"), std::string::npos)
        << why;
    EXPECT_NE(why.find("which has a straggler deadline"), std::string::npos) << why;
  }
}

TEST(Capture, OfAJobThatLosesItsAggregatorReplaysWithTheSameResults) {
  const testing::TemporaryPath path("restart.pcap");
  Scenario scenario;
  scenario.network.loss = 0.01;
  scenario.shards = 2;
  scenario.operations.assign(2, {.length = 100'000});
  scenario.workers.resize(3);
  for (WorkerPlan& worker : scenario.workers) {
    worker.submit_at.assign(scenario.operations.size(), 0);
    worker.window = 16;
  }
  World world(scenario.network, scenario.seed);
  Recorder recorder(world, {.trace_path = path.string()});
  add_aggregators(world, scenario);
  const std::size_t first = add_workers(world, scenario);
  const auto some_results = [&] { return world.aggregator(0).count(Counter::kResults) > 20; };
  ASSERT_TRUE(world.run_until(some_results, world.now() + 10 * kSecond));
  world.aggregator(0).restart(world.now(), 1'000);
  ASSERT_TRUE(world.run_until([&] { return world.workers_done(); }, world.now() + 60 * kSecond));
  EXPECT_TRUE(check_results(world, scenario, first).empty());
  recorder.close();

  const tools::TraceSurvey survey(path.string());
  EXPECT_EQ(survey.sessions().size(), 4U);  // one a shard before, one after
  const tools::ReplayReport report = tools::replay_into_shards(survey, {}, 1);
  EXPECT_TRUE(report.good(survey)) << tools::to_text(survey, report);
  EXPECT_GE(report.answers.right, 2 * 72U);  // chunks of 1,408 values
}

}  // namespace
}  // namespace natagg::simulation
