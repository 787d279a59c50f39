// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The parts of the command line tools that compute.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "support/reference.hpp"
#include "tools/error_budget.hpp"
#include "tools/exponent_histogram.hpp"
#include "tools/floats.hpp"
#include "tools/reference.hpp"

namespace natagg::tools {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<std::vector<float>> generated(std::uint32_t ranks, std::size_t count) {
  std::vector<std::vector<float>> inputs;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    inputs.push_back(generate_floats(1, rank, count));
  }
  return inputs;
}

TEST(GeneratedFloats, DependOnSeedRankAndPlaceAlone) {
  const std::vector<float> values = generate_floats(1, 2, 1000);
  const std::vector<float> longer = generate_floats(1, 2, 2000);
  EXPECT_TRUE(std::equal(values.begin(), values.end(), longer.begin()));
  EXPECT_NE(generate_floats(2, 2, 1000), values);
  EXPECT_NE(generate_floats(1, 3, 1000), values);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(longer, 0.0F)), 250, 75);
  for (const float value : longer) EXPECT_LT(std::abs(value), 0.125F);
}

TEST(FloatFiles, AreReadAsTheyWereWritten) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("natagg-tools-test-" + std::to_string(::getpid()) + ".f32");
  const std::vector<float> values = generate_floats(1, 0, 100);
  write_floats(path, values);
  EXPECT_EQ(read_floats(path), values);
  EXPECT_EQ(read_floats(path, 3), std::vector<float>(values.begin(), values.begin() + 3));
  EXPECT_THROW(static_cast<void>(read_floats(path, 101)), std::runtime_error);
  std::filesystem::resize_file(path, 399);
  EXPECT_THROW(static_cast<void>(read_floats(path)), std::runtime_error);
  std::filesystem::remove(path);
  EXPECT_THROW(static_cast<void>(read_floats(path)), std::runtime_error);
}

TEST(ToolReference, AgreesWithTheTestsOwn) {
  for (const std::uint32_t ranks : {1U, 2U, 4U, 9U, 300U}) {
    auto inputs = generated(ranks, 400);
    for (auto& input : inputs) input[7] = 1024.0F;  // beyond int64 from 8 ranks on
    inputs[0][3] = std::nanf("");
    inputs[0][4] = kInf;
    inputs.back()[5] = -kInf;
    for (const auto rounding : {proto::Rounding::kStochastic, proto::Rounding::kNearest}) {
      for (const auto reduction : {proto::Reduction::kSum, proto::Reduction::kAverage}) {
        const auto mine = reference_allreduce(inputs, {9, 4, rounding, -3, reduction});
        const auto other = reference::all_reduce(inputs, {9, 4, rounding, -3, reduction});
        EXPECT_EQ(first_difference(mine, other), mine.size()) << ranks << " ranks";
      }
    }
  }
}

TEST(RoundingVariance, IsLargestInTheMiddleAndZeroAtPowersOfTwo) {
  EXPECT_EQ(rounding_variance(1.5, 0), 0.25);
  EXPECT_EQ(rounding_variance(-1.5, 0), 0.25);
  EXPECT_EQ(rounding_variance(1.0, 0), 0.0);
  EXPECT_EQ(rounding_variance(0.0, 0), 0.0);
  EXPECT_EQ(rounding_variance(4096.0, 0), 0.0);  // clips, which is bias and not variance
  EXPECT_EQ(rounding_variance(1536.0, 1), 262144.0);
  EXPECT_EQ(rounding_variance(0x1p-51, 0), 0x1p-102);  // to 0 or 2^-50
  // 4/3 of a power of two is the worst input: 1/8 of its square.
  EXPECT_NEAR(rounding_variance(4.0 / 3, 0), 16.0 / 9 / 8, 1e-15);
}

TEST(ErrorBudget, ExpectsWhatRandomRoundingGivesOnAverage) {
  constexpr int draws = 4000;
  const auto inputs = generated(3, 64);
  double mean = 0;
  double square = 0;
  ErrorBudget budget;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    budget = compare(inputs, reference_allreduce(inputs, {.seed = seed}), 1, 0);
    mean += budget.measured / draws;
    square += budget.measured * budget.measured / draws;
  }
  const double standard_error = std::sqrt((square - mean * mean) / draws);
  ASSERT_TRUE(budget.aggregator_variance);
  EXPECT_NEAR(budget.worker_variance + *budget.aggregator_variance, mean, 5 * standard_error);
  EXPECT_LT(standard_error, 0.02 * mean);
  EXPECT_LE(*budget.aggregator_variance, budget.aggregator_bound());
  EXPECT_LE(budget.worker_variance + budget.aggregator_bound(), budget.bound());
}

TEST(ErrorBudget, ScalesAveragesAndLeavesOutSpecials) {
  const std::vector<std::vector<float>> inputs{{1.5F, kInf, 2.0F}, {0.5F, 1.0F, 2.0F}};
  const std::vector<float> average{1.0F, kInf, 1.0F};  // 2.0 is exact, and 2.0 for 4.0 is not
  const ErrorBudget budget = compare(inputs, average, 2, 0);
  EXPECT_EQ(budget.sum, 4.0 + 16.0);
  EXPECT_EQ(budget.inputs, 2.25 + 0.25 + 4.0 + 4.0);
  EXPECT_EQ(budget.measured, 4.0);
  EXPECT_EQ(budget.worker_variance, 0.25);
  EXPECT_FALSE(compare(std::vector(11, average), average, 1, 0).aggregator_variance);
}

TEST(ExponentHistogram, CountsEveryValueOnce) {
  ExponentHistogram histogram;
  const std::vector<float> values{0.0F, -0.0F, 1.0F, -1.5F, 0x1p-149F, kInf, std::nanf(""), 3e38F};
  histogram.add(values);
  EXPECT_EQ(histogram.zeros(), 2U);
  EXPECT_EQ(histogram.specials(), 2U);
  EXPECT_EQ(histogram.at(0), 2U);
  EXPECT_EQ(histogram.at(-149), 1U);
  EXPECT_EQ(histogram.at(127), 1U);
  EXPECT_EQ(histogram.at(128), 0U);
  const std::string text = histogram.to_text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 5);
  EXPECT_NE(text.find("zero  25.00 %"), std::string::npos) << text;
  EXPECT_EQ(ExponentHistogram().to_text(), "");
}

}  // namespace
}  // namespace natagg::tools
