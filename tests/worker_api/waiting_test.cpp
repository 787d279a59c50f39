// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Waiting and testing: from any thread, from several at once, as often as they like, and for any
// length of time.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "support/loopback_aggregator.hpp"
#include "worker_api/support.hpp"

namespace natagg::testing {
namespace {

using std::chrono::microseconds;

TEST(Waiting, InSeveralThreadsForOneRequestGivesEachItsResult) {
  constexpr std::uint32_t kThreads = 6;
  const LoopbackAggregator aggregator(1);
  std::vector<std::vector<float>> values(2, std::vector<float>(30'000, 1.0F));
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  const Request request = workers[0].allreduce_async(values[0]);
  std::atomic<std::uint32_t> begun = 0;
  std::atomic<int> early = 0;
  std::atomic<int> done = 0;
  on_all_ranks(kThreads + 1, [&](std::uint32_t thread) {
    if (thread == kThreads) {  // rank 1 makes the result possible when all others are at it
      while (begun != kThreads) std::this_thread::yield();
      workers[1].allreduce(values[1]);
      return;
    }
    if (request.test()) ++early;
    ++begun;
    if (thread % 3 == 0) request.wait();
    if (thread % 3 == 1 && !request.wait(std::chrono::seconds(20))) ++early;
    while (!request.test()) std::this_thread::yield();
    if (values[0].front() == 2.0F && values[0].back() == 2.0F) ++done;
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(done, static_cast<int>(kThreads));
}

TEST(Waiting, InSeveralThreadsForOneRequestGivesEachItsFailure) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(1000, 1.0F);
  std::vector<Worker> workers = connect_all(
      2,
      {.aggregators = aggregator.address(), .operation_timeout = std::chrono::milliseconds(200)});
  const Request request = workers[0].allreduce_async(values);
  std::atomic<int> failed = 0;
  on_all_ranks(4, [&](std::uint32_t thread) {
    const Error error = error_of([&] {
      if (thread % 2 == 0) return request.wait();
      while (!request.test()) std::this_thread::yield();
    });
    if (error.status() == NATAGG_TIMED_OUT && error.rank() == 1) ++failed;
  });
  EXPECT_EQ(failed, 4);
}

TEST(Waiting, TakesTimeOutsOfAnySize) {
  const LoopbackAggregator aggregator(1);
  std::vector<std::vector<float>> values(2, std::vector<float>(10, 1.0F));
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  const Request request = workers[0].allreduce_async(values[0]);
  natagg_worker* handle = workers[0].handle();
  EXPECT_EQ(natagg_wait(handle, request.id(), 0), NATAGG_IN_PROGRESS);
  EXPECT_EQ(natagg_wait(handle, request.id(), 1), NATAGG_IN_PROGRESS);
  EXPECT_FALSE(request.wait(microseconds{-1}));
  EXPECT_FALSE(request.wait(microseconds::min()));
  // These would wait for years, and all end with the operation.
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::uint32_t> begun = 0;
  on_all_ranks(5, [&](std::uint32_t thread) {
    if (thread == 4) {
      while (begun != 4) std::this_thread::yield();
      workers[1].allreduce(values[1]);
      return;
    }
    ++begun;
    if (thread == 3) {
      EXPECT_TRUE(request.wait(microseconds::max()));
    } else {
      const std::int64_t timeout = std::array{most, least, std::int64_t{-1}}[thread];
      EXPECT_EQ(natagg_wait(handle, request.id(), timeout), NATAGG_OK);
    }
  });
  for (const std::int64_t timeout : {least, std::int64_t{0}, most}) {
    EXPECT_EQ(natagg_wait(handle, request.id(), timeout), NATAGG_OK);
  }
}

TEST(Waiting, AgainGivesTheSameAnswerHoweverMuchCameBetween) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(10, 1.0F);
  Worker worker({.aggregators = aggregator.address()});
  const Request first = worker.allreduce_async(values);
  first.wait();
  for (int i = 0; i < 1000; ++i) worker.allreduce(values);
  const Request copy = first;
  for (int i = 0; i < 3; ++i) {
    first.wait();
    EXPECT_TRUE(copy.test());
  }
  EXPECT_EQ(natagg_test(worker.handle(), first.id()), NATAGG_OK);
  EXPECT_EQ(natagg_test(worker.handle(), 1001), NATAGG_OK);
  EXPECT_EQ(natagg_test(worker.handle(), 1002), NATAGG_INVALID_ARGUMENT);
}

TEST(Waiting, WithoutAWorkerIsRefused) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(10, 1.0F);
  const Error none = error_of([] { Request().wait(); });
  EXPECT_EQ(none.status(), NATAGG_INVALID_ARGUMENT);
  EXPECT_STREQ(none.what(), "invalid argument");
  Worker worker({.aggregators = aggregator.address()});
  const Worker taken = std::move(worker);
  EXPECT_EQ(error_of([&] { worker.allreduce(values); }).status(), NATAGG_INVALID_ARGUMENT);
  EXPECT_EQ(error_of([&] { static_cast<void>(worker.statistics()); }).status(),
            NATAGG_INVALID_ARGUMENT);
  worker.shutdown();
}

}  // namespace
}  // namespace natagg::testing
