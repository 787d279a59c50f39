// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Reductions that do not wait for stragglers, as a program sees them.
#include <gtest/gtest.h>

#include <chrono>

#include "support.hpp"
#include "support/loopback_aggregator.hpp"
#include "support/reference.hpp"

namespace natagg::testing {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLength = 5'000;

class PartialReduction : public ::testing::Test {
 protected:
  void start(std::uint32_t world, milliseconds deadline) {
    Options options{.aggregators = aggregator_.address(), .seed = 3};
    options.straggler_deadline =
        std::chrono::duration_cast<decltype(options.straggler_deadline)>(deadline);
    workers_.clear();
    workers_ = connect_all(world, options);
    inputs_ = gradients(world, kLength);
    results_.assign(world, std::vector<float>(kLength));
  }

  Request submit(std::uint32_t rank, Reduction reduction) {
    return workers_[rank].allreduce_async(inputs_[rank], results_[rank], reduction);
  }

  const LoopbackAggregator aggregator_{2};
  std::vector<Worker> workers_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::vector<float>> results_;
};

TEST_F(PartialReduction, DoesNotWaitForALateRankWhichThenGetsTheSameBits) {
  for (const Reduction reduction : {Reduction::kPartialSum, Reduction::kPartialAverage}) {
    start(3, milliseconds(100));
    const Request first = submit(0, reduction);
    const Request second = submit(1, reduction);
    ASSERT_TRUE(first.wait(std::chrono::seconds(20)));
    ASSERT_TRUE(second.wait(std::chrono::seconds(20)));
    const Request late = submit(2, reduction);
    late.wait();
    EXPECT_EQ(bits_of(results_[0]), bits_of(results_[1]));
    EXPECT_EQ(bits_of(results_[0]), bits_of(results_[2]));
    const reference::Terms terms{.seed = 3, .reduction = static_cast<proto::Reduction>(reduction)};
    EXPECT_EQ(bits_of(results_[0]),
              bits_of(reference::reduce_some(inputs_, {0, 1}, terms, 0, kLength)));
    for (const Request& request : {first, second, late}) {
      const natagg_partial partial = request.partial();
      EXPECT_EQ(partial.partial_chunks, partial.chunks);
      EXPECT_GT(partial.chunks, 0U);
      EXPECT_EQ(partial.missing[0], 0b100U);
      EXPECT_EQ(partial.least_ranks, 2U);
      EXPECT_NEAR(partial.variance_inflation, 1.5, 1e-12);
    }
  }
}

TEST_F(PartialReduction, OfRanksThatAreInTimeIsAnOrdinaryOne) {
  start(2, milliseconds(20'000));
  on_all_ranks(2, [&](std::uint32_t rank) {
    const Request request = submit(rank, Reduction::kPartialAverage);
    request.wait();
    EXPECT_EQ(request.partial().partial_chunks, 0U);
    EXPECT_EQ(request.partial().missing[0], 0U);
    EXPECT_EQ(request.partial().least_ranks, 2U);
    EXPECT_EQ(request.partial().variance_inflation, 1.0);
  });
  const reference::Terms terms{.seed = 3, .reduction = proto::Reduction::kAverage};
  EXPECT_EQ(bits_of(results_[0]), bits_of(reference::all_reduce(inputs_, terms)));
  EXPECT_EQ(bits_of(results_[1]), bits_of(results_[0]));
}

TEST_F(PartialReduction, MixesWithOnesThatWaitForAll) {
  start(2, milliseconds(1));
  const Request whole = submit(0, Reduction::kSum);
  EXPECT_FALSE(whole.wait(milliseconds(100)));
  submit(1, Reduction::kSum).wait();
  whole.wait();
  const reference::Terms terms{.seed = 3, .reduction = proto::Reduction::kSum};
  EXPECT_EQ(bits_of(results_[0]), bits_of(reference::all_reduce(inputs_, terms)));
}

TEST_F(PartialReduction, DisagreementAboutItIsAMismatchOnEveryRank) {
  start(2, milliseconds(20'000));
  std::array<Error, 2> errors{Error(NATAGG_OK, -1, ""), Error(NATAGG_OK, -1, "")};
  on_all_ranks(2, [&](std::uint32_t rank) {
    errors[rank] = error_of(
        [&] { submit(rank, rank == 0 ? Reduction::kSum : Reduction::kPartialSum).wait(); });
  });
  for (const Error& error : errors) {
    EXPECT_EQ(error.status(), NATAGG_MISMATCH);
    EXPECT_NE(std::string(error.what()).find("partial sum of 5000 float32"), std::string::npos)
        << error.what();
  }
}

TEST_F(PartialReduction, IsReportedForRequestsThatEndedWell) {
  start(1, milliseconds(10));
  const Request request = submit(0, Reduction::kPartialSum);
  request.wait();
  EXPECT_GT(request.partial().chunks, 0U);
  const Request never(workers_[0].handle(), request.id() + 1);
  EXPECT_EQ(error_of([&] { static_cast<void>(never.partial()); }).status(),
            NATAGG_INVALID_ARGUMENT);
  natagg_partial partial{};
  partial.size = sizeof partial + 1;
  EXPECT_EQ(natagg_get_partial(workers_[0].handle(), request.id(), &partial),
            NATAGG_INVALID_ARGUMENT);
  partial.size = sizeof partial.size;
  EXPECT_EQ(natagg_get_partial(workers_[0].handle(), request.id(), &partial), NATAGG_OK);
  EXPECT_EQ(partial.chunks, 0U) << "no more than was asked for";
}

TEST(PartialTerms, ThatDifferAreRefusedWithBothNumbers) {
  const LoopbackAggregator aggregator(1);
  const auto differ = [&](Options one, Options other) {
    one.aggregators = other.aggregators = aggregator.address();
    one.world = other.world = 2;
    other.rank = 1;
    one.connect_timeout = other.connect_timeout = milliseconds(2'000);
    std::string refused;
    on_all_ranks(2, [&](std::uint32_t rank) {
      const Error error = error_of([&] { const Worker worker(rank == 0 ? one : other); });
      if (error.status() == NATAGG_REFUSED) refused = error.what();
    });
    return refused;
  };
  Options one;
  Options other;
  one.straggler_deadline = other.straggler_deadline = milliseconds(50);
  one.job = other.job = 1;
  other.straggler_deadline = milliseconds(60);
  EXPECT_NE(differ(one, other).find("straggler deadline in ms: "), std::string::npos);
  one.job = other.job = 2;
  other.straggler_deadline = milliseconds(50);
  other.quorum = 1;
  EXPECT_NE(differ(one, other).find("quorum: "), std::string::npos);
}

}  // namespace
}  // namespace natagg::testing
