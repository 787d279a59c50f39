// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/drawn_seeds.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>

#include "simulation/play.hpp"
#include "tools/trace/trace_survey.hpp"
#include "trace/capture_file.hpp"

namespace natagg::simulation {
namespace {

/// A job that is said to fail if two ranks or more reduce more than 3,000 values, and is played
/// only where something is kept of it.
struct Accused {
  Scenario scenario;

  bool operator==(const Accused&) const = default;
  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const {
    const bool kept = recording.lines != nullptr || !recording.trace_path.empty();
    std::vector<std::string> violations;
    if (kept) violations = simulation::play(scenario, recording).violations;
    const auto is_long = [](const OperationPlan& plan) { return plan.length > 3'000; };
    if (scenario.workers.size() > 1 && std::ranges::any_of(scenario.operations, is_long)) {
      violations.emplace_back("it is accused");
    }
    return violations;
  }
  [[nodiscard]] Simplifications<Accused> simplifications() const {
    Simplifications<Accused> steps;
    append_of_part<Accused, Scenario>(steps, simulation::simplifications(scenario),
                                      [](Accused& story) { return &story.scenario; });
    return steps;
  }
  [[nodiscard]] std::string describe() const { return to_string(scenario); }
};

/// Of odd seeds alone fails.
Accused draw_accused(std::uint64_t seed) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.authenticated = true;
  scenario.shards = 2;
  scenario.operations.assign(3, {.length = seed % 2 == 0 ? 2'000U : 5'000U});
  scenario.workers.resize(3);
  for (WorkerPlan& worker : scenario.workers) worker.submit_at.assign(3, 10 * kMillisecond);
  return {scenario};
}

/// The failures of a test that plays so.
std::vector<std::string> failures(const Playing& playing) {
  ::testing::TestPartResultArray results;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    play_seeds<Accused>(playing, draw_accused);
  }
  std::vector<std::string> messages;
  for (int i = 0; i < results.size(); ++i) {
    messages.emplace_back(results.GetTestPartResult(i).message());
  }
  return messages;
}

std::size_t position(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part << " is not in " << text;
  return at;
}

/// One shard's session of two ranks without a key, in which 3,001 values take three chunks.
void expect_trace_of_the_least(const std::string& path) {
  const tools::TraceSurvey survey(path);
  ASSERT_EQ(survey.sessions().size(), 1U);
  EXPECT_EQ(survey.sessions()[0].world(), 2U);
  EXPECT_EQ(survey.complete_chunks(), 3U);
}

constexpr const char* kLeast = "2 workers, 1 x 1 shards, loss 0,";

TEST(DrawnSeeds, ThatFailAreReportedWithTheirStoryAndTheLeastOneWhichIsTraced) {
  const testing::TemporaryPath path("least.pcap");
  const auto reports = failures({.first = 10, .count = 4, .trace_path = path.string()});
  ASSERT_EQ(reports.size(), 2U);
  const std::string& report = reports[0];
  const std::size_t replay =
      position(report,
               "NATAGG_SIM_SEED=11 and --gtest_filter="
               "DrawnSeeds.ThatFailAreReportedWithTheirStoryAndTheLeastOneWhichIsTraced\n");
  const std::size_t drawn = position(report, "3 workers, 1 x 2 shards, loss 0,");
  const std::size_t shrinking = position(report, "NATAGG_SIM_SHRINK=1");
  const std::size_t least = position(report, kLeast);
  EXPECT_TRUE(replay < drawn && drawn < shrinking && shrinking < least) << report;
  position(report, "; lengths 3001; rank 0 starts 0 ms, submits at 0 ms,");
  position(report, "\n  it is accused");
  position(report, path.string() + " is a trace of it");
  position(reports[1], "NATAGG_SIM_SEED=13 ");
  EXPECT_EQ(reports[1].find("trace"), std::string::npos);
  expect_trace_of_the_least(path.string());
}

TEST(DrawnSeeds, ThatFailAreNotReportedWithoutEnd) {
  EXPECT_EQ(failures({.first = 1, .count = 1'000, .step = 2}).size(), 5U);
}

TEST(DrawnSeeds, OneOfThemIsPlayedAsDrawnWithALineForEachDatagram) {
  const testing::TemporaryPath path("drawn.pcap");
  std::ostringstream out;
  ASSERT_EQ(failures({.first = 11, .alone = &out, .trace_path = path.string()}).size(), 1U);
  position(out.str(), "HELLO");
  position(out.str(), "seed 11 fails: 3 workers, 1 x 2 shards");
  EXPECT_EQ(out.str().find(kLeast), std::string::npos);
  EXPECT_THROW(tools::TraceSurvey{path.string()}, tools::TraceError);  // authenticated

  std::ostringstream well;
  EXPECT_TRUE(failures({.first = 12, .alone = &well, .shrink = true}).empty());
  position(well.str(), "seed 12 plays well: 3 workers, 1 x 2 shards");
}

TEST(DrawnSeeds, OneOfThemIsPlayedAsItsLeastStoryTheSameThatWasReported) {
  const testing::TemporaryPath path("again.pcap");
  const std::string report = failures({.first = 11}).at(0);
  std::ostringstream out;
  const auto found =
      failures({.first = 11, .alone = &out, .shrink = true, .trace_path = path.string()});
  ASSERT_EQ(found.size(), 1U);
  const std::string least = report.substr(position(report, kLeast));
  position(found[0], least);
  position(out.str(), least);
  expect_trace_of_the_least(path.string());
}

/// Sets a variable of the environment for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

  void set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(DrawnSeeds, AreDividedIntoPartsOfWhichEachSeedIsInOne) {
  const Variable one("NATAGG_SIM_SEED", nullptr);
  const Variable seeds("NATAGG_SIM_SEEDS", "100");
  const Variable first("NATAGG_SIM_FIRST", "1000");
  Variable part("NATAGG_SIM_PART", nullptr);
  std::map<std::uint64_t, int> played;
  for (const char* each : {"0/3", "1/3", "2/3"}) {
    part.set(each);
    const Playing playing = playing_from_environment(10);
    EXPECT_EQ(playing.alone, nullptr);
    for (std::uint64_t i = 0; i < playing.count; ++i) ++played[playing.first + i * playing.step];
  }
  std::map<std::uint64_t, int> expected;
  for (std::uint64_t seed = 1'000; seed < 1'010; ++seed) expected[seed] = 1;
  EXPECT_EQ(played, expected);
}

TEST(DrawnSeeds, OneOfThemIsChosenByTheEnvironmentWithItsLeastStory) {
  const Variable one("NATAGG_SIM_SEED", "77");
  Variable shrink("NATAGG_SIM_SHRINK", nullptr);
  const Variable trace("NATAGG_SIM_TRACE", "file.pcap");
  Playing playing = playing_from_environment(250);
  EXPECT_EQ(playing.first, 77U);
  EXPECT_EQ(playing.count, 1U);
  EXPECT_NE(playing.alone, nullptr);
  EXPECT_FALSE(playing.shrink);
  EXPECT_EQ(playing.trace_path, "file.pcap");
  shrink.set("1");
  playing = playing_from_environment(250);
  EXPECT_TRUE(playing.shrink);
}

}  // namespace
}  // namespace natagg::simulation
