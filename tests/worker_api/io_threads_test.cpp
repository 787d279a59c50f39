// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Workers with several I/O threads: the same bits, the same ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "support/loopback_aggregator.hpp"
#include "worker_api/support.hpp"

namespace natagg::testing {
namespace {

using std::chrono::milliseconds;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(
      a, b, {}, [](float x) { return std::bit_cast<std::uint32_t>(x); },
      [](float x) { return std::bit_cast<std::uint32_t>(x); });
}

/// Ranks that differ in their number of threads.
std::vector<Worker> connect_with(const std::vector<std::uint32_t>& threads, Options options) {
  std::vector<std::optional<Worker>> connected(threads.size());
  options.world = static_cast<std::uint32_t>(threads.size());
  on_all_ranks(options.world, [&](std::uint32_t rank) {
    Options own = options;
    own.rank = rank;
    own.io_threads = threads[rank];
    connected[rank].emplace(own);
  });
  std::vector<Worker> workers;
  for (std::optional<Worker>& worker : connected) workers.push_back(std::move(*worker));
  return workers;
}

/// Rank 0's results of all-reduces of several lengths, which all ranks must share.
std::vector<std::vector<float>> reduce(std::vector<Worker>& workers) {
  std::vector<std::vector<float>> results;
  for (const std::size_t length : {1U, 0U, 1'409U, 100'000U, 7U}) {
    std::vector<std::vector<float>> values;
    for (std::size_t rank = 0; rank < workers.size(); ++rank) {
      values.push_back(gradient(rank + 100 * length, length));
    }
    std::vector<Request> requests;
    for (std::size_t rank = 0; rank < workers.size(); ++rank) {
      requests.push_back(workers[rank].allreduce_async(values[rank]));
    }
    for (const Request& request : requests) request.wait();
    for (const std::vector<float>& value : values) EXPECT_TRUE(same_bits(value, values[0]));
    results.push_back(values[0]);
  }
  return results;
}

TEST(IoThreads, DivideTheShardsAndChangeNoBit) {
  const LoopbackAggregator aggregator(3);
  const Options options{.aggregators = aggregator.address(), .seed = 5};
  std::vector<Worker> single = connect_with({1, 1, 1, 1}, options);
  const auto expected = reduce(single);
  single.clear();
  std::vector<Worker> workers = connect_with({1, 2, 3, 64}, options);
  const auto results = reduce(workers);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(same_bits(results[i], expected[i])) << i;
  }
  const std::vector<std::uint32_t> threads{1, 2, 3, 3};  // no more than there are shards
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    const natagg_statistics statistics = workers[rank].statistics();
    EXPECT_EQ(statistics.io_threads, threads[rank]);
    EXPECT_EQ(statistics.shards, 3U);
    EXPECT_EQ(statistics.result_packets, workers[0].statistics().result_packets);
  }
}

TEST(IoThreads, LoseTheirPacketsIndependently) {
  const LoopbackAggregator aggregator(2);
  std::vector<Worker> workers = connect_with({2, 2}, {.aggregators = aggregator.address(),
                                                      .transmit_loss = 0.05,
                                                      .receive_loss = 0.05,
                                                      .loss_seed = 3});
  static_cast<void>(reduce(workers));
  for (Worker& worker : workers) EXPECT_GT(worker.statistics().injected_losses, 0U);
}

TEST(IoThreads, AllEndWhereTheRanksDisagree) {
  const LoopbackAggregator aggregator(2);
  std::vector<Worker> workers = connect_with({2, 1}, {.aggregators = aggregator.address()});
  std::vector<float> longer(50'000, 1.0F);
  std::vector<float> shorter(49'999, 1.0F);
  const Request mine = workers[0].allreduce_async(longer);
  const Request theirs = workers[1].allreduce_async(shorter);
  for (const Request& request : {mine, theirs}) {
    const Error error = error_of([&] { request.wait(); });
    EXPECT_EQ(error.status(), NATAGG_MISMATCH) << error.what();
    EXPECT_NE(std::string(error.what()).find("49999"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("50000"), std::string::npos) << error.what();
  }
  // Whoever waits may have its memory back.
  std::ranges::fill(longer, 7.0F);
  EXPECT_EQ(error_of([&] { workers[0].allreduce(longer); }).status(), NATAGG_MISMATCH);
  EXPECT_EQ(std::ranges::count(longer, 7.0F), 50'000);
}

TEST(IoThreads, AllEndWhenTheAggregatorDies) {
  LoopbackAggregator aggregator(2);
  std::vector<Worker> workers = connect_with({2}, {.aggregators = aggregator.address(),
                                                   .heartbeat = milliseconds(20),
                                                   .aggregator_timeout = milliseconds(300)});
  aggregator.mute();
  std::vector<float> values(50'000, 1.0F);
  const Error error = error_of([&] { workers[0].allreduce(values); });
  EXPECT_EQ(error.status(), NATAGG_AGGREGATOR_LOST) << error.what();
}

TEST(IoThreads, CloseWithOperationsInFlight) {
  const LoopbackAggregator aggregator(2);
  std::vector<Worker> workers = connect_with({2, 2}, {.aggregators = aggregator.address()});
  std::vector<float> values(100'000, 1.0F);
  const Request request = workers[0].allreduce_async(values);
  const auto start = std::chrono::steady_clock::now();
  workers[0].shutdown();
  EXPECT_EQ(error_of([&] { request.wait(); }).status(), NATAGG_CLOSED);
  workers.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST(IoThreads, SayWhomTheyWaitForWhileConnecting) {
  const LoopbackAggregator aggregator(2);
  const Error error = error_of([&] {
    const Worker worker({.aggregators = aggregator.address(),
                         .world = 2,
                         .connect_timeout = milliseconds(300),
                         .io_threads = 2});
  });
  EXPECT_EQ(error.status(), NATAGG_TIMED_OUT);
  EXPECT_NE(std::string(error.what()).find("rank 1 has not joined"), std::string::npos)
      << error.what();
}

}  // namespace
}  // namespace natagg::testing
