// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Ranks that are late by many windows of chunks, or never come: how long the others wait for them,
// and what becomes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

using aggregator::Counter;

constexpr std::size_t kWorld = 4;
constexpr std::size_t kLate = 3;
constexpr std::uint16_t kWindow = 4;
constexpr std::uint64_t kValues = 128;
constexpr std::uint64_t kWindowOfValues = kWindow * kValues;
// How far a rank may be behind: what is kept for it, and what its slots hold.
constexpr std::uint64_t kMostBehind = proto::kLateWindows + 1;
constexpr Time kDeadline = 20 * kMillisecond;
constexpr Time kTick = 10 * kMillisecond;
constexpr Time kPatience = 500 * kMillisecond;
constexpr Time kBegin = 600 * kMillisecond;

class LeftBehind : public testing::Test {
 protected:
  /// A sum of so many windows, which rank kLate submits later than the others by `by`.
  void begin(std::uint64_t windows, Time by) {
    scenario_.network.delay = 100 * kMicrosecond;
    scenario_.straggler_deadline = kDeadline;
    scenario_.values = kValues;
    scenario_.operations.assign(
        1, {.length = windows * kWindowOfValues, .reduction = proto::Reduction::kPartialSum});
    scenario_.workers.resize(kWorld);
    for (WorkerPlan& worker : scenario_.workers) {
      worker.window = kWindow;
      worker.submit_at.assign(1, kBegin);
    }
    scenario_.workers[kLate].submit_at[0] += by;
    begin();
  }

  void begin() {
    world_.emplace(scenario_.network, scenario_.seed);
    answers_.emplace(*world_, kWorld);
    begin_ = world_->now();
    add_aggregators(*world_, scenario_);
    add_workers(*world_, scenario_);
  }

  /// All that are not late have ended operation `index`.
  [[nodiscard]] bool others_ended(std::size_t index) {
    return std::ranges::all_of(world_->workers(), [&](const WorkerHost& host) {
      return host.config().rank == kLate || host.jobs()[index].status.has_value();
    });
  }
  bool run_until_others_ended(std::size_t index, Time limit) {
    return world_->run_until([&] { return others_ended(index); }, begin_ + limit);
  }

  void expect_others_right(std::size_t index, std::uint64_t missing) {
    for (std::size_t rank = 0; rank < kLate; ++rank) {
      const Job& job = world_->worker(rank).jobs()[index];
      EXPECT_EQ(job.status, NATAGG_OK) << world_->worker(rank).stream().failure().message;
      EXPECT_EQ(job.partial.missing[0], missing);
    }
    expect_same_bits();
  }

  void expect_same_bits() {
    for (const std::string& text : check_results(*world_, scenario_, 0, true, &*answers_)) {
      ADD_FAILURE() << text;
    }
    for (const std::string& text : world_->violations()) ADD_FAILURE() << text;
    EXPECT_FALSE(answers_->contradictory());
  }

  std::uint64_t count(Counter counter) { return world_->aggregator(0).count(counter); }

  Scenario scenario_;
  std::optional<World> world_;
  std::optional<Answers> answers_;
  Time begin_ = 0;
};

TEST_F(LeftBehind, IsNobodyForWhomAllIsKept) {
  begin(kMostBehind, 2 * kSecond);
  const auto windows = static_cast<Time>(kMostBehind);
  EXPECT_TRUE(run_until_others_ended(0, kBegin + windows * (kDeadline + kTick) + kTick));
  expect_others_right(0, 1U << kLate);
  EXPECT_EQ(count(Counter::kHeldBack), 0U);
  ASSERT_TRUE(world_->run_until([&] { return world_->workers_done(); }, begin_ + 10 * kSecond));
  const Job& late = world_->worker(kLate).jobs()[0];
  EXPECT_EQ(late.status, NATAGG_OK);
  EXPECT_LT(late.ended, begin_ + kBegin + 2 * kSecond + 20 * kMillisecond);
  EXPECT_EQ(count(Counter::kLateContributions), kMostBehind * kWindow);
  EXPECT_EQ(count(Counter::kLeftBehind), 0U);
  expect_same_bits();
}

TEST_F(LeftBehind, IsWhoIsLateByMoreThanIsKeptAndTheOthersWaitNoLongerThanTheDeadlineAllows) {
  constexpr std::uint64_t kWindows = 4 * kMostBehind;
  begin(kWindows, 30 * kSecond);
  // Each window waits for the deadline until the rank is left behind, and none after that.
  const Time waits = static_cast<Time>(kMostBehind) * (kDeadline + kTick) + kPatience + 2 * kTick;
  EXPECT_TRUE(run_until_others_ended(0, kBegin + waits + 100 * kMillisecond));
  expect_others_right(0, 1U << kLate);
  EXPECT_GT(count(Counter::kHeldBack), 0U);
  EXPECT_EQ(count(Counter::kLeftBehind), 1U);
  EXPECT_EQ(count(Counter::kPartialResults), kWindows * kWindow);
  const worker::Failure& failure = world_->worker(kLate).stream().failure();
  EXPECT_EQ(failure.status, NATAGG_RANK_LOST);
  EXPECT_EQ(failure.rank, static_cast<int>(kLate));
  EXPECT_NE(failure.message.find("rank 3 was left behind"), std::string::npos) << failure.message;
}

TEST_F(LeftBehind, IsNobodyWhoCatchesUpWhileTheOthersWait) {
  constexpr std::uint64_t kWindows = 2 * kMostBehind;
  // When they have waited for half of the time that they would.
  const Time late = static_cast<Time>(kMostBehind) * (kDeadline + kTick / 2) + kPatience / 2;
  begin(kWindows, late);
  ASSERT_TRUE(world_->run_until([&] { return world_->workers_done(); }, begin_ + 10 * kSecond));
  EXPECT_GT(count(Counter::kHeldBack), 0U);
  EXPECT_EQ(count(Counter::kLeftBehind), 0U);
  EXPECT_EQ(world_->worker(kLate).jobs()[0].status, NATAGG_OK);
  // The others noticed at once that it had come.
  EXPECT_LT(world_->worker(0).jobs()[0].ended, begin_ + kBegin + late + 100 * kMillisecond);
  expect_others_right(0, 1U << kLate);
}

TEST_F(LeftBehind, IsARankThatCreepsOneWindowATime) {
  // It submits a window each time that the others would no longer wait for it, were it asked for no
  // more than to move.
  constexpr std::size_t kOperations = 3 * kMostBehind;
  begin(1, 0);
  scenario_.operations.assign(kOperations, scenario_.operations[0]);
  for (WorkerPlan& worker : scenario_.workers) worker.submit_at.assign(kOperations, kBegin);
  for (std::size_t i = 0; i < kOperations; ++i) {
    scenario_.workers[kLate].submit_at[i] += static_cast<Time>(i + 1) * kPatience * 9 / 10;
  }
  begin();
  const Time waits = static_cast<Time>(kMostBehind) * (kDeadline + kTick) + 2 * kPatience;
  EXPECT_TRUE(run_until_others_ended(kOperations - 1, kBegin + waits));
  expect_others_right(kOperations - 1, 1U << kLate);
  EXPECT_EQ(count(Counter::kLeftBehind), 1U);
}

TEST_F(LeftBehind, IsWhoDiesAndOnlyAnOperationThatNeedsAllRanksFailsForIt) {
  begin(1, 0);
  // Of one chunk each: it is silent before it is too late.
  scenario_.operations.assign(60, {.length = kValues, .reduction = proto::Reduction::kPartialSum});
  scenario_.operations.push_back({.length = 1'000, .reduction = proto::Reduction::kSum});
  for (WorkerPlan& worker : scenario_.workers) {
    worker.submit_at.clear();
    for (Time i = 0; i < 60; ++i) worker.submit_at.push_back(kBegin + i * 40 * kMillisecond);
    worker.submit_at.push_back(worker.submit_at.back() + 100 * kMillisecond);
  }
  begin();
  world_->at(begin_ + kBegin + kMillisecond, [&] { world_->worker(kLate).vanish(); });
  ASSERT_TRUE(run_until_others_ended(60, 10 * kSecond));
  for (std::size_t rank = 0; rank < kLate; ++rank) {
    const WorkerHost& host = world_->worker(rank);
    for (std::size_t i = 0; i < 60; ++i) {
      EXPECT_EQ(host.jobs()[i].status, NATAGG_OK) << i;
      EXPECT_LE(host.jobs()[i].ended, host.jobs()[i].submitted + kDeadline + 2 * kTick) << i;
    }
    EXPECT_EQ(host.jobs()[60].status, NATAGG_RANK_LOST);
    EXPECT_EQ(host.stream().failure().rank, static_cast<int>(kLate));
  }
  EXPECT_EQ(count(Counter::kSilentMembers), 1U);
  expect_same_bits();
}

TEST_F(LeftBehind, IsNobodyOfAnAggregatorThatRestartsWhileARankIsManyWindowsBehind) {
  begin(kMostBehind, 2 * kSecond);
  world_->at(begin_ + kBegin + kSecond, [&] { world_->aggregator(0).restart(world_->now(), 99); });
  ASSERT_TRUE(world_->run_until([&] { return world_->workers_done(); }, begin_ + 20 * kSecond));
  EXPECT_EQ(count(Counter::kKnownResults), kMostBehind * kWindow);
  EXPECT_EQ(world_->worker(kLate).jobs()[0].status, NATAGG_OK);
  expect_others_right(0, 1U << kLate);
}

}  // namespace
}  // namespace natagg::simulation
