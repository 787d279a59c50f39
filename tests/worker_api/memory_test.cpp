// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Want of memory at every place: it becomes a status, crosses the C interface as no exception, and
// leaves the order of operations as it was.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "support/loopback_aggregator.hpp"
#include "worker_api/failing_memory.hpp"
#include "worker_api/support.hpp"

namespace natagg::testing {
namespace {

/// Runs `call` with its first allocation failing, then its second, and so on until none does;
/// returns how many failed. Each must make the status NATAGG_NO_MEMORY, and the last NATAGG_OK.
template <typename Call>
int sweep(Call call) {
  for (int n = 0; n < 10'000; ++n) {
    allocations_left = n;
    const natagg_status status = call();
    const bool failed = allocations_left < 0;
    allocations_left = -1;
    if (!failed) {
      EXPECT_EQ(status, NATAGG_OK) << n;
      return n;
    }
    EXPECT_EQ(status, NATAGG_NO_MEMORY) << n;
  }
  ADD_FAILURE() << "the call allocates without end";
  return 0;
}

TEST(Memory, WantedAnywhereByConnectIsItsStatus) {
  const LoopbackAggregator aggregator(2);
  const std::string address = aggregator.address();
  natagg_options options{};
  ASSERT_EQ(natagg_options_init(&options, sizeof options), NATAGG_OK);
  options.aggregators = address.c_str();
  options.io_threads = 2;
  natagg_worker* worker = nullptr;
  std::array<char, 64> text{};
  const int allocations = sweep([&] {
    ++options.job;
    const natagg_status status = natagg_connect(&options, &worker, text.data(), text.size());
    if (status != NATAGG_OK) {
      EXPECT_STREQ(text.data(), "out of memory");
      EXPECT_EQ(worker, nullptr);
    }
    return status;
  });
  EXPECT_GT(allocations, 10);
  natagg_close(worker);
}

TEST(Memory, WantedBySubmissionsLeavesTheirOrder) {
  const LoopbackAggregator aggregator(1);
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  natagg_worker* handle = workers[0].handle();
  std::vector<std::array<float, 2>> mine(300);
  std::vector<std::array<float, 2>> theirs(300);
  std::vector<natagg_request> requests(300);
  int allocations = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = theirs[i] = {static_cast<float>(1U << (i % 8)), 1.0F};
    allocations += sweep([&] {
      const natagg_status status = natagg_allreduce_async(handle, mine[i].data(), mine[i].data(), 2,
                                                          NATAGG_FLOAT32, NATAGG_SUM, &requests[i]);
      EXPECT_EQ(requests[i], status == NATAGG_OK ? i + 1 : 0);
      return status;
    });
  }
  EXPECT_GE(allocations, 300);
  for (std::array<float, 2>& values : theirs) workers[1].allreduce(values);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    ASSERT_EQ(natagg_wait(handle, requests[i], -1), NATAGG_OK);
    const std::array<float, 2> sum{static_cast<float>(2U << (i % 8)), 2.0F};
    EXPECT_EQ(mine[i], sum) << i;
    EXPECT_EQ(theirs[i], sum) << i;
  }
}

TEST(Memory, IsNotNeededForWaitingStatisticsAndShuttingDown) {
  const LoopbackAggregator aggregator(1);
  Worker worker({.aggregators = aggregator.address()});
  std::array<float, 2> values{1.0F, 2.0F};
  const natagg_request request = worker.allreduce_async(values).id();
  natagg_worker* handle = worker.handle();
  EXPECT_EQ(sweep([&] { return natagg_wait(handle, request, -1); }), 0);
  EXPECT_EQ(sweep([&] { return natagg_wait(handle, request, 1000); }), 0);
  natagg_statistics statistics{};
  statistics.size = sizeof statistics;
  EXPECT_EQ(sweep([&] { return natagg_get_statistics(handle, &statistics); }), 0);
  EXPECT_EQ(sweep([&] {
              natagg_shutdown(handle);
              return NATAGG_OK;
            }),
            0);
  std::array<char, 64> text{};
  allocations_left = 0;
  const natagg_status status = natagg_error_message(handle, text.data(), text.size(), nullptr);
  allocations_left = -1;
  EXPECT_EQ(status, NATAGG_NO_MEMORY);  // and the next time, with memory, the reason
  EXPECT_EQ(natagg_error_message(handle, text.data(), text.size(), nullptr), NATAGG_CLOSED);
  EXPECT_STREQ(text.data(), "the worker was closed");
}

TEST(Memory, WantedByTheWorkerThreadFailsItsOperations) {
  const LoopbackAggregator aggregator(2);
  std::vector<float> values(20'000, 1.0F);
  for (const long good : {0, 1, 2, 3, 5, 8, 13, 21}) {
    Worker worker({.aggregators = aggregator.address(),
                   .job = static_cast<std::uint32_t>(good),
                   .io_threads = good % 2 == 0 ? 1U : 2U});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    allocations_left_to_workers = good;
    Error error(NATAGG_OK, -1, "");
    while (error.status() == NATAGG_OK && std::chrono::steady_clock::now() < deadline) {
      error = error_of([&] { worker.allreduce(values); });
    }
    allocations_left_to_workers = -1;
    EXPECT_EQ(error.status(), NATAGG_NO_MEMORY) << good;
    EXPECT_STREQ(error.what(), "out of memory") << good;
    EXPECT_EQ(error_of([&] { worker.allreduce(values); }).status(), NATAGG_NO_MEMORY);
    EXPECT_GT(worker.statistics().bytes_sent, 0U);
  }
}

}  // namespace
}  // namespace natagg::testing
