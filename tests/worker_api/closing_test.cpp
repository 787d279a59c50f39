// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Abort and close: what becomes of operations in flight, of waits in other threads, of the other
// ranks, and of the memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "support/loopback_aggregator.hpp"
#include "worker_api/support.hpp"
#include "worker_api/threads.hpp"

namespace natagg::testing {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Closing, EndsOperationsInFlightAndReturnsPromptly) {
  const LoopbackAggregator aggregator(1);
  std::array<std::vector<float>, 3> values;
  for (auto& value : values) value.assign(100'000, 1.0F);
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  std::vector<Request> requests;
  for (auto& value : values) requests.push_back(workers[0].allreduce_async(value));
  natagg_status seen = NATAGG_OK;
  std::atomic<bool> waiting = false;
  std::thread waiter([&] {
    waiting = true;
    seen = error_of([&] { requests[1].wait(); }).status();
  });
  while (!waiting) std::this_thread::yield();
  const auto start = Clock::now();
  workers[0].shutdown();
  waiter.join();
  EXPECT_EQ(seen, NATAGG_CLOSED);
  for (const Request& request : requests) {
    EXPECT_EQ(error_of([&] { request.wait(); }).status(), NATAGG_CLOSED);
  }
  EXPECT_EQ(error_of([&] { workers[0].allreduce(values[0]); }).status(), NATAGG_CLOSED);
  workers.clear();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
}

TEST(Closing, WithoutShutdownGivesTheMemoryOfOperationsInFlightBack) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(100'000, 1.0F);
  std::vector<float> others = values;
  for (std::uint32_t job = 0; job < 10; ++job) {
    std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address(), .job = job});
    const Request other = workers[1].allreduce_async(others);
    static_cast<void>(workers[0].allreduce_async(values));
    workers.erase(workers.begin());  // rank 0, in the middle of it
    std::ranges::fill(values, 7.0F);
    static_cast<void>(error_of([&] { other.wait(); }));
    EXPECT_EQ(std::ranges::count(values, 7.0F), 100'000);
  }
}

TEST(Closing, ReturnsEvenWhenTheAggregatorIsGone) {
  LoopbackAggregator aggregator(2);
  std::vector<float> values(1000);
  Worker worker({.aggregators = aggregator.address()});
  aggregator.mute();
  const Request request = worker.allreduce_async(values);
  const auto start = Clock::now();
  worker.shutdown();
  EXPECT_EQ(error_of([&] { request.wait(); }).status(), NATAGG_CLOSED);
  { const Worker gone = std::move(worker); }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
}

/// A worker of the C interface; rank 1 of its job is `other`.
natagg_worker* connect_with(std::optional<Worker>& other, const std::string& aggregators) {
  natagg_worker* worker = nullptr;
  on_all_ranks(2, [&](std::uint32_t rank) {
    if (rank == 1) {
      other.emplace(Options{.aggregators = aggregators, .rank = 1, .world = 2});
      return;
    }
    natagg_options options{};
    ASSERT_EQ(natagg_options_init(&options, sizeof options), NATAGG_OK);
    options.aggregators = aggregators.c_str();
    options.world = 2;
    ASSERT_EQ(natagg_connect(&options, &worker, nullptr, 0), NATAGG_OK);
  });
  return worker;
}

TEST(Closing, EndsTheCallsOfOtherThreadsBeforeItFreesTheWorker) {
  const LoopbackAggregator aggregator(1);
  std::optional<Worker> other;
  natagg_worker* worker = connect_with(other, aggregator.address());
  ASSERT_NE(worker, nullptr);
  std::array<std::vector<float>, 4> values;
  for (auto& value : values) value.assign(10'000, 1.0F);
  natagg_request request = 0;
  ASSERT_EQ(natagg_allreduce_async(worker, values[0].data(), values[0].data(), 10'000,
                                   NATAGG_FLOAT32, NATAGG_SUM, &request),
            NATAGG_OK);
  // The first waits for a request of this thread, the others for their own.
  std::array<natagg_status, 4> seen{};
  std::array<std::atomic<pid_t>, 4> numbers{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < values.size(); ++i) {
    threads.emplace_back([&, i] {
      float* data = values[i].data();
      numbers[i] = ::gettid();
      seen[i] = i == 0 ? natagg_wait(worker, request, -1)
                       : natagg_allreduce(worker, data, data, 10'000, NATAGG_FLOAT32, NATAGG_SUM);
    });
  }
  for (const std::atomic<pid_t>& number : numbers) {
    while (number == 0) std::this_thread::yield();
    EXPECT_TRUE(await_sleep(number));
  }
  natagg_close(worker);
  for (std::thread& thread : threads) thread.join();
  for (const natagg_status status : seen) EXPECT_EQ(status, NATAGG_CLOSED);
}

TEST(Closing, AbortsTheOthersWhoAreToldWhoLeft) {
  const LoopbackAggregator aggregator(2);
  std::array<std::vector<float>, 3> values;
  for (auto& value : values) value.assign(100'000, 1.0F);
  std::vector<Worker> workers = connect_all(3, {.aggregators = aggregator.address()});
  std::vector<Request> requests;
  for (std::size_t i = 0; i < 2; ++i) requests.push_back(workers[i].allreduce_async(values[i]));
  const auto start = Clock::now();
  workers[2].shutdown();
  for (const Request& request : requests) {
    const Error error = error_of([&] { request.wait(); });
    EXPECT_EQ(error.status(), NATAGG_RANK_LOST) << error.what();
    EXPECT_EQ(error.rank(), 2) << error.what();
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
}

TEST(Closing, AgainOrAfterAFailureChangesNoStatus) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(1000, 1.0F);
  std::vector<Worker> workers =
      connect_all(2, {.aggregators = aggregator.address(), .operation_timeout = milliseconds(100)});
  const Request request = workers[0].allreduce_async(values);
  const Error failure = error_of([&] { request.wait(); });
  EXPECT_EQ(failure.status(), NATAGG_TIMED_OUT) << failure.what();
  for (int i = 0; i < 2; ++i) {
    workers[0].shutdown();
    const Error error = error_of([&] { request.wait(); });
    EXPECT_EQ(error.status(), NATAGG_TIMED_OUT);
    EXPECT_EQ(error.rank(), 1);
    EXPECT_STREQ(error.what(), failure.what());
    EXPECT_EQ(error_of([&] { workers[0].allreduce(values); }).status(), NATAGG_TIMED_OUT);
  }
  EXPECT_GT(workers[0].statistics().data_packets, 0U);
}

TEST(Closing, KeepsWhatHadEndedBefore) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(5000, 3.0F);
  Worker worker({.aggregators = aggregator.address()});
  const Request done = worker.allreduce_async(values);
  done.wait();
  worker.shutdown();
  EXPECT_TRUE(done.test());
  done.wait();
  EXPECT_EQ(chunks_sent(worker), 1U);
  const Error error = error_of([&] { static_cast<void>(worker.allreduce_async(values)); });
  EXPECT_EQ(error.status(), NATAGG_CLOSED);
  EXPECT_EQ(error.rank(), -1);
  EXPECT_STREQ(error.what(), "the worker was closed");
}

}  // namespace
}  // namespace natagg::testing
