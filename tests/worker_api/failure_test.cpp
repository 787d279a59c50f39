// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What callers see when something goes wrong: statuses, texts, ranks, and no hang.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "support/loopback_aggregator.hpp"
#include "worker_api/support.hpp"

namespace natagg::testing {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Failure, NamesTheRankThatIsMissingWhenAnOperationTimesOut) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(10'000, 1.0F);
  std::vector<Worker> workers = connect_all(
      3,
      {.aggregators = aggregator.address(), .operation_timeout = std::chrono::milliseconds(400)});
  std::vector<float> others = values;
  std::vector<float> later = values;
  const Request mine = workers[0].allreduce_async(values);
  const Request other = workers[2].allreduce_async(others);
  const Error error = error_of([&] { mine.wait(); });
  EXPECT_EQ(error.status(), NATAGG_TIMED_OUT) << error.what();
  EXPECT_EQ(error.rank(), 1) << error.what();
  EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
  EXPECT_NE(error_of([&] { other.wait(); }).status(), NATAGG_OK);
  // Failure is final, and the same at every call.
  EXPECT_EQ(error_of([&] { static_cast<void>(mine.test()); }).status(), NATAGG_TIMED_OUT);
  EXPECT_EQ(error_of([&] { workers[0].allreduce(later); }).status(), NATAGG_TIMED_OUT);
}

TEST(Failure, OfMoreOperationsThanAWorkerTakesNamesTheirNumberAndHarmsNone) {
  constexpr std::size_t kMost = 65'536;
  const LoopbackAggregator aggregator(1);
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  std::array<float, 1> mine{1.0F};
  std::vector<Request> requests;
  for (std::size_t i = 0; i < kMost; ++i) requests.push_back(workers[0].allreduce_async(mine));
  const Error error = error_of([&] { static_cast<void>(workers[0].allreduce_async(mine)); });
  EXPECT_EQ(error.status(), NATAGG_INVALID_ARGUMENT) << error.what();
  EXPECT_NE(std::string(error.what()).find("65536 operations"), std::string::npos) << error.what();
  std::array<float, 1> other{1.0F};
  workers[1].allreduce(other);
  requests.front().wait();
  EXPECT_EQ(other[0], 2.0F);
  requests.push_back(workers[0].allreduce_async(mine));
}

TEST(Failure, OfARankThatDiesReachesTheOthers) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(10'000, 1.0F);
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  const Request request = workers[0].allreduce_async(values);
  { const Worker gone = std::move(workers[1]); }
  const Error error = error_of([&] { request.wait(); });
  EXPECT_EQ(error.status(), NATAGG_RANK_LOST) << error.what();
  EXPECT_EQ(error.rank(), 1) << error.what();
}

TEST(Failure, OfRanksThatDisagreeNamesBothLengths) {
  const LoopbackAggregator aggregator(1);
  std::vector<std::vector<float>> values{std::vector<float>(1000), std::vector<float>(1001)};
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  std::array<std::string, 2> texts;
  on_all_ranks(2, [&](std::uint32_t rank) {
    const Error error = error_of([&] { workers[rank].allreduce(values[rank]); });
    EXPECT_EQ(error.status(), NATAGG_MISMATCH) << error.what();
    texts[rank] = error.what();
  });
  for (const std::string& text : texts) {
    EXPECT_NE(text.find("1000"), std::string::npos) << text;
    EXPECT_NE(text.find("1001"), std::string::npos) << text;
  }
}

TEST(Failure, OfRanksThatDisagreeNamesBothTypes) {
  constexpr std::array<const char*, 4> names{"float32", "float64", "float16", "bfloat16"};
  constexpr std::uint64_t length = 1000;
  std::array<std::array<double, length>, 2> memory{};
  const LoopbackAggregator aggregator(1);
  for (std::size_t type = 0; type < names.size(); ++type) {
    const std::array types{type, (type + 1) % names.size()};
    std::vector<Worker> workers = connect_all(
        2, {.aggregators = aggregator.address(), .job = static_cast<std::uint32_t>(type)});
    on_all_ranks(2, [&](std::uint32_t rank) {
      const Error error = error_of([&] {
        workers[rank].allreduce(memory[rank].data(), memory[rank].data(), length,
                                static_cast<DataType>(types[rank]));
      });
      EXPECT_EQ(error.status(), NATAGG_MISMATCH) << error.what();
      for (const std::size_t each : types) {
        const std::string operation = std::string("sum of 1000 ") + names[each];
        EXPECT_NE(std::string(error.what()).find(operation), std::string::npos) << error.what();
      }
    });
  }
}

TEST(Failure, OfASilentAggregatorIsReported) {
  LoopbackAggregator aggregator(1);
  std::vector<float> values(1000);
  Worker worker({.aggregators = aggregator.address(),
                 .heartbeat = milliseconds(20),
                 .aggregator_timeout = milliseconds(200)});
  aggregator.mute();
  const Error error = error_of([&] { worker.allreduce(values); });
  EXPECT_EQ(error.status(), NATAGG_AGGREGATOR_LOST) << error.what();
  EXPECT_NE(std::string(error.what()).find(aggregator.address()), std::string::npos)
      << error.what();
}

TEST(Connecting, TimesOutAndNamesTheRankThatIsMissing) {
  const LoopbackAggregator aggregator(1);
  const auto start = Clock::now();
  const Error error = error_of([&] {
    const Worker worker({.aggregators = aggregator.address(),
                         .rank = 1,
                         .world = 3,
                         .connect_timeout = milliseconds(300)});
  });
  EXPECT_EQ(error.status(), NATAGG_TIMED_OUT) << error.what();
  EXPECT_NE(std::string(error.what()).find("rank 0"), std::string::npos) << error.what();
  EXPECT_GE(Clock::now() - start, milliseconds(300));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
}

TEST(Connecting, TimesOutNamingAnAggregatorThatDoesNotAnswer) {
  LoopbackAggregator aggregator(1);
  aggregator.mute();
  const Error error = error_of([&] {
    const Worker worker(
        {.aggregators = aggregator.address(), .connect_timeout = milliseconds(200)});
  });
  EXPECT_EQ(error.status(), NATAGG_TIMED_OUT) << error.what();
  EXPECT_NE(std::string(error.what()).find(aggregator.address()), std::string::npos)
      << error.what();
}

TEST(Connecting, IsRefusedWithBothNumbers) {
  const LoopbackAggregator aggregator(1);
  std::atomic<bool> refused = false;
  on_all_ranks(2, [&](std::uint32_t rank) {
    Options options{.aggregators = aggregator.address(), .rank = rank, .world = 2 + rank};
    if (rank == 0) {
      options.connect_timeout = milliseconds(500);
      while (!refused) {
        EXPECT_EQ(error_of([&] { const Worker worker(options); }).status(), NATAGG_TIMED_OUT);
      }
      return;
    }
    while (aggregator.received(proto::Type::kJoin) == 0) std::this_thread::yield();
    const Error error = error_of([&] { const Worker worker(options); });
    refused = true;
    EXPECT_EQ(error.status(), NATAGG_REFUSED) << error.what();
    EXPECT_NE(std::string(error.what()).find('3'), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find('2'), std::string::npos) << error.what();
  });
}

TEST(Connecting, ToARunningJobTimesOutSayingSo) {
  const LoopbackAggregator aggregator(1);
  const std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  const Error error = error_of([&] {
    const Worker worker({.aggregators = aggregator.address(),
                         .rank = 1,
                         .world = 2,
                         .connect_timeout = milliseconds(300)});
  });
  EXPECT_EQ(error.status(), NATAGG_TIMED_OUT) << error.what();
  EXPECT_NE(std::string(error.what()).find("running"), std::string::npos) << error.what();
}

TEST(Arguments, ThatAreWrongLeaveTheWorkerAsItWas) {
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(64, 1.0F);
  Worker worker({.aggregators = aggregator.address()});
  natagg_worker* handle = worker.handle();
  natagg_request request = 9;
  const auto refusal = [&](const void* in, void* out, std::uint64_t count, natagg_type type,
                           natagg_reduction reduction) {
    EXPECT_EQ(natagg_allreduce_async(handle, in, out, count, type, reduction, &request),
              NATAGG_INVALID_ARGUMENT);
    EXPECT_EQ(request, 0U);
    std::array<char, 256> text{};
    EXPECT_EQ(natagg_error_message(handle, text.data(), text.size(), nullptr), NATAGG_OK);
    return std::string(text.data());
  };
  float* data = values.data();
  EXPECT_EQ(refusal(data, data, 1, static_cast<natagg_type>(9), NATAGG_SUM),
            "allreduce: there is no type 9");
  EXPECT_EQ(refusal(data, data, 1, static_cast<natagg_type>(256), NATAGG_SUM),
            "allreduce: there is no type 256");
  EXPECT_EQ(refusal(data, data, 1, NATAGG_FLOAT32, static_cast<natagg_reduction>(4)),
            "allreduce: there is no reduction 4");
  EXPECT_EQ(refusal(data, data, 1, NATAGG_FLOAT32, NATAGG_PARTIAL_SUM),
            "allreduce: a partial reduction needs the option straggler_deadline_ms");
  EXPECT_EQ(refusal(nullptr, data, 3, NATAGG_FLOAT32, NATAGG_SUM),
            "allreduce: in is NULL with 3 values");
  EXPECT_EQ(refusal(data, nullptr, 3, NATAGG_FLOAT32, NATAGG_SUM),
            "allreduce: out is NULL with 3 values");
  EXPECT_EQ(refusal(data, data + 31, 32, NATAGG_FLOAT32, NATAGG_SUM),
            "allreduce: in and out overlap without being equal");
  EXPECT_EQ(refusal(data, data + 30, 16, NATAGG_FLOAT64, NATAGG_SUM),
            "allreduce: in and out overlap without being equal");
  EXPECT_EQ(refusal(data + 1, data, 1, NATAGG_FLOAT64, NATAGG_SUM),
            "allreduce: in is not aligned to 8 bytes");
  EXPECT_EQ(refusal(data, reinterpret_cast<char*>(data) + 1, 1, NATAGG_BFLOAT16, NATAGG_SUM),
            "allreduce: out is not aligned to 2 bytes");
  EXPECT_NE(refusal(data, data, std::uint64_t{1} << 56, NATAGG_FLOAT32, NATAGG_SUM).find("2^56"),
            std::string::npos);
  EXPECT_EQ(natagg_wait(handle, 0, -1), NATAGG_INVALID_ARGUMENT);
  EXPECT_EQ(natagg_wait(handle, 1, -1), NATAGG_INVALID_ARGUMENT);
  const Error sizes = error_of([&] { worker.allreduce(std::span(values), std::span(data, 3)); });
  EXPECT_STREQ(sizes.what(), "allreduce: 64 values in, 3 out");

  EXPECT_EQ(natagg_allreduce(handle, data, data + 32, 32, NATAGG_FLOAT32, NATAGG_SUM), NATAGG_OK);
  EXPECT_EQ(natagg_allreduce(handle, nullptr, nullptr, 0, NATAGG_FLOAT32, NATAGG_SUM), NATAGG_OK);
  EXPECT_EQ(natagg_allreduce(handle, data, data + 32, 16, NATAGG_FLOAT64, NATAGG_SUM), NATAGG_OK);
  EXPECT_EQ(natagg_allreduce(handle, data, data + 1, 2, NATAGG_FLOAT16, NATAGG_SUM), NATAGG_OK);
  EXPECT_EQ(natagg_wait(handle, 4, -1), NATAGG_OK);
}

TEST(Statistics, OfAnOlderOrNewerProgramRespectTheirSize) {
  const LoopbackAggregator aggregator(1);
  const Worker worker({.aggregators = aggregator.address()});
  natagg_statistics statistics{};
  statistics.data_packets = 77;
  statistics.size = sizeof statistics.size;
  EXPECT_EQ(natagg_get_statistics(worker.handle(), &statistics), NATAGG_OK);
  EXPECT_EQ(statistics.data_packets, 77U);
  statistics.size = sizeof statistics + 1;
  EXPECT_EQ(natagg_get_statistics(worker.handle(), &statistics), NATAGG_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace natagg::testing
