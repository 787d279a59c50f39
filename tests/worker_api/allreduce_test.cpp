// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// All-reduces through the public C++ interface, the shipped aggregator core and 127.0.0.1.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <tuple>

#include "support/loopback_aggregator.hpp"
#include "support/reference.hpp"
#include "worker_api/support.hpp"

namespace natagg::testing {
namespace {

using std::chrono::microseconds;

reference::Terms terms(std::uint32_t operation, Reduction reduction, const Options& options = {}) {
  return {.seed = options.seed,
          .operation = operation,
          .rounding = static_cast<proto::Rounding>(options.rounding),
          .shift = options.shift,
          .reduction = static_cast<proto::Reduction>(reduction)};
}

class Allreduce : public ::testing::TestWithParam<std::tuple<std::uint32_t, std::size_t>> {};

TEST_P(Allreduce, GivesEveryRankTheBitsOfTheDefinition) {
  const auto [world, length] = GetParam();
  const auto inputs = gradients(world, length);
  const LoopbackAggregator aggregator(2);
  const Options options{.aggregators = aggregator.address(), .seed = 11};
  std::vector<std::vector<float>> sums(world, std::vector<float>(length, -1.0F));
  std::vector<std::vector<float>> averages = inputs;
  std::vector<Worker> workers = connect_all(world, options);
  on_all_ranks(world, [&](std::uint32_t rank) {
    workers[rank].allreduce(inputs[rank], sums[rank], Reduction::kSum);
    workers[rank].allreduce(averages[rank], Reduction::kAverage);  // in place
  });
  const auto sum = bits_of(reference::all_reduce(inputs, terms(0, Reduction::kSum, options)));
  const auto average =
      bits_of(reference::all_reduce(inputs, terms(1, Reduction::kAverage, options)));
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    EXPECT_EQ(bits_of(sums[rank]), sum) << "rank " << rank;
    EXPECT_EQ(bits_of(averages[rank]), average) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Allreduce,
                         ::testing::Combine(::testing::Values(1, 2, 4),
                                            ::testing::Values(0, 1, 1407, 1408, 1409, 215'370)));

TEST(AllreduceOrder, KeepsSeveralOperationsInFlightApart) {
  constexpr std::uint32_t world = 2;
  constexpr std::array<std::size_t, 6> lengths{20'000, 0, 1, 5000, 0, 40'000};
  const LoopbackAggregator aggregator(2);
  std::array<std::vector<std::vector<float>>, lengths.size()> inputs;
  std::array<std::vector<std::vector<float>>, lengths.size()> results;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    inputs[i] = gradients(world, lengths[i]);
    results[i].assign(world, std::vector<float>(lengths[i]));
  }
  std::vector<Worker> workers =
      connect_all(world, {.aggregators = aggregator.address(), .values_per_packet = 1408});
  on_all_ranks(world, [&](std::uint32_t rank) {
    std::vector<Request> requests;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      requests.push_back(workers[rank].allreduce_async(inputs[i][rank], results[i][rank]));
      EXPECT_EQ(requests.back().id(), i + 1);
    }
    // The last first: each is done or not by itself.
    for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
      request->wait();
      EXPECT_TRUE(request->test());
      EXPECT_TRUE(request->wait(microseconds{0}));
    }
  });
  for (std::uint32_t i = 0; i < lengths.size(); ++i) {
    const auto expected = bits_of(reference::all_reduce(inputs[i], terms(i, Reduction::kSum)));
    EXPECT_EQ(bits_of(results[i][0]), expected) << i;
    EXPECT_EQ(bits_of(results[i][1]), expected) << i;
  }
}

TEST(AllreduceOrder, ServesTwoJobsOfOneProcessAtOnce) {
  const LoopbackAggregator aggregator(1);
  const auto inputs = gradients(2, 3000);
  std::vector<Worker> red = connect_all(2, {.aggregators = aggregator.address(), .job = 7});
  std::vector<Worker> blue =
      connect_all(2, {.aggregators = aggregator.address(), .job = 8, .seed = 5});
  std::array<std::vector<float>, 4> results;
  for (auto& result : results) result.resize(3000);
  on_all_ranks(4, [&](std::uint32_t i) {
    (i < 2 ? red : blue)[i % 2].allreduce(inputs[i % 2], results[i]);
  });
  const auto red_bits = bits_of(reference::all_reduce(inputs, terms(0, Reduction::kSum)));
  const auto blue_bits =
      bits_of(reference::all_reduce(inputs, terms(0, Reduction::kSum, Options{.seed = 5})));
  EXPECT_EQ(bits_of(results[0]), red_bits);
  EXPECT_EQ(bits_of(results[1]), red_bits);
  EXPECT_EQ(bits_of(results[2]), blue_bits);
  EXPECT_EQ(bits_of(results[3]), blue_bits);
  EXPECT_NE(red_bits, blue_bits);
}

TEST(AllreduceOrder, SpreadsOverAPoolWithTheSameBits) {
  const LoopbackAggregator one(1);
  const LoopbackAggregator two(2);
  const auto inputs = gradients(2, 50'000);
  std::vector<std::vector<float>> results(2, std::vector<float>(50'000));
  std::vector<Worker> workers =
      connect_all(2, {.aggregators = one.address() + "," + two.address()});
  EXPECT_EQ(workers[0].statistics().shards, 3U);
  on_all_ranks(2,
               [&](std::uint32_t rank) { workers[rank].allreduce(inputs[rank], results[rank]); });
  const auto expected = bits_of(reference::all_reduce(inputs, terms(0, Reduction::kSum)));
  EXPECT_EQ(bits_of(results[0]), expected);
  EXPECT_EQ(bits_of(results[1]), expected);
  EXPECT_GT(one.received(proto::Type::kData), 0U);
  EXPECT_GT(two.received(proto::Type::kData), 0U);
}

TEST(AllreduceOrder, WaitsNoLongerThanItIsTold) {
  const LoopbackAggregator aggregator(1);
  std::vector<std::vector<float>> values(2, std::vector<float>(10, 1.0F));
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  const Request first = workers[0].allreduce_async(values[0]);
  EXPECT_FALSE(first.test());
  EXPECT_FALSE(first.wait(microseconds{0}));
  EXPECT_FALSE(first.wait(microseconds{2000}));  // rank 1 has not begun
  const Request second = workers[1].allreduce_async(values[1]);
  EXPECT_TRUE(first.wait(std::chrono::seconds(20)));
  second.wait();
  EXPECT_EQ(values[0][9], 2.0F);
}

TEST(AllreduceOrder, TakesSubmissionsAndWaitsFromManyThreads) {
  constexpr std::uint32_t threads = 4;
  constexpr int rounds = 50;
  const LoopbackAggregator aggregator(1);
  Worker worker({.aggregators = aggregator.address()});
  std::atomic<int> done = 0;
  on_all_ranks(threads, [&](std::uint32_t thread) {
    std::vector<float> values(100, static_cast<float>(1U << thread));
    for (int i = 0; i < rounds; ++i) {
      worker.allreduce(values);
      EXPECT_GT(worker.statistics().data_packets, 0U);
      if (values[0] == static_cast<float>(1U << thread)) ++done;
    }
  });
  EXPECT_EQ(done, static_cast<int>(threads) * rounds);
}

TEST(AllreduceOrder, MovesWithItsWorker) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(5000, 4.0F);
  Worker first({.aggregators = aggregator.address()});
  const Request request = first.allreduce_async(values);
  Worker second = std::move(first);
  request.wait();
  EXPECT_EQ(values[4999], 4.0F);
  second = Worker({.aggregators = aggregator.address(), .job = 1});  // ends the first connection
  second.allreduce(values);
  EXPECT_EQ(chunks_sent(second), 1U);
}

TEST(AllreduceValues, CarriesSpecialsAndCountsThem) {
  const LoopbackAggregator aggregator(1);
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> inputs{{nan, inf, inf, 0.0F, 4096.0F, -0x1p-140F, -inf},
                                               {1.0F, 2.0F, -inf, 0.0F, 1.0F, 0.0F, -1.0F}};
  std::vector<std::vector<float>> results(2, std::vector<float>(7));
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  on_all_ranks(2,
               [&](std::uint32_t rank) { workers[rank].allreduce(inputs[rank], results[rank]); });
  const auto expected = bits_of(reference::all_reduce(inputs, terms(0, Reduction::kSum)));
  EXPECT_EQ(bits_of(results[0]), expected);
  EXPECT_EQ(bits_of(results[1]), expected);
  const natagg_statistics statistics = workers[0].statistics();
  EXPECT_EQ(statistics.values_nan, 1U);
  EXPECT_EQ(statistics.values_inf, 3U);
  EXPECT_EQ(statistics.values_zero, 1U);
  EXPECT_EQ(statistics.values_clipped, 1U);
  EXPECT_EQ(statistics.values_flushed, 1U);
}

}  // namespace
}  // namespace natagg::testing
