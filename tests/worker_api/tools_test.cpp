// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The parts of the command line tools that compute.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "support/reference.hpp"
#include "tools/error_budget.hpp"
#include "tools/exponent_histogram.hpp"
#include "tools/reference.hpp"
#include "tools/tensor_data.hpp"

namespace natagg::tools {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<Tensor> generated(DataType type, std::uint32_t ranks, std::size_t count) {
  std::vector<Tensor> inputs;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    inputs.push_back(generate_tensor(type, 1, rank, count));
  }
  return inputs;
}

template <typename T>
std::vector<T> copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

std::vector<std::vector<float>> floats(std::span<const Tensor> tensors) {
  std::vector<std::vector<float>> all;
  for (const Tensor& tensor : tensors) all.push_back(copy(tensor.values<float>()));
  return all;
}

class Tensors : public ::testing::TestWithParam<DataType> {};

TEST_P(Tensors, AreGeneratedFromTypeSeedRankAndPlaceAlone) {
  const Tensor tensor = generate_tensor(GetParam(), 1, 2, 1000);
  const Tensor longer = generate_tensor(GetParam(), 1, 2, 2000);
  ASSERT_EQ(tensor.size(), 1000U);
  EXPECT_TRUE(std::ranges::equal(tensor.bytes(), longer.bytes().first(tensor.bytes().size())));
  EXPECT_NE(generate_tensor(GetParam(), 2, 2, 1000), tensor);
  EXPECT_NE(generate_tensor(GetParam(), 1, 3, 1000), tensor);
}

TEST_P(Tensors, AreReadAsTheyWereWritten) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("natagg-tools-test-" + std::to_string(::getpid()));
  const Tensor tensor = generate_tensor(GetParam(), 1, 0, 100);
  write_tensor(path, tensor);
  EXPECT_EQ(std::filesystem::file_size(path), 100 * size_of(GetParam()));
  EXPECT_EQ(read_tensor(path, GetParam()), tensor);
  EXPECT_EQ(read_tensor(path, GetParam(), 3), generate_tensor(GetParam(), 1, 0, 3));
  EXPECT_THROW(static_cast<void>(read_tensor(path, GetParam(), 101)), std::runtime_error);
  std::filesystem::resize_file(path, 100 * size_of(GetParam()) - 1);
  EXPECT_THROW(static_cast<void>(read_tensor(path, GetParam())), std::runtime_error);
  std::filesystem::remove(path);
  EXPECT_THROW(static_cast<void>(read_tensor(path, GetParam())), std::runtime_error);
}

TEST_P(Tensors, AreNamedByTheirTypes) {
  EXPECT_EQ(type_named(type_name(GetParam())), GetParam());
  EXPECT_EQ(type_named("float8"), std::nullopt);
}

TEST_P(Tensors, DifferWhereTheirFirstBitsDo) {
  const Tensor tensor = generate_tensor(GetParam(), 1, 0, 100);
  Tensor other = tensor;
  EXPECT_EQ(first_difference(tensor, other), 100U);
  other.bytes()[7 * size_of(GetParam()) + 1] ^= std::byte{1};
  EXPECT_EQ(first_difference(tensor, other), 7U);
}

INSTANTIATE_TEST_SUITE_P(OfEveryType, Tensors,
                         ::testing::Values(DataType::kFloat32, DataType::kFloat64,
                                           DataType::kFloat16, DataType::kBfloat16));

TEST(GeneratedTensors, HaveAGradientsZerosAndExponents) {
  const Tensor tensor = generate_tensor(DataType::kFloat32, 1, 2, 2000);
  const std::span<const float> values = tensor.values<float>();
  const auto negative = [](float value) { return value < 0; };
  EXPECT_NEAR(static_cast<double>(std::ranges::count(values, 0.0F)), 250, 75);
  EXPECT_NEAR(static_cast<double>(std::ranges::count_if(values, negative)), 875, 150);
  for (const float value : values) {
    EXPECT_LT(std::abs(value), 0.125F);
    EXPECT_TRUE(value == 0 || std::abs(value) >= 0x1p-43F) << value;
  }
}

TEST(TensorText, IsANumberOrTheBitsOfOne) {
  Tensor tensor(DataType::kFloat64, 2);
  tensor.values<double>()[1] = -0.1;
  EXPECT_EQ(to_string(tensor, 1), "-0.1");
  tensor = Tensor(DataType::kBfloat16, 1);
  tensor.values<std::uint16_t>()[0] = 0x7FC0;
  EXPECT_EQ(to_string(tensor, 0), "0x7fc0");
}

/// Compares the tool's reference with the tests' for one type, whose values T has.
template <typename T>
void expect_same_reference(DataType type) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const std::uint32_t ranks : {1U, 2U, 4U, 9U, 300U}) {
    std::vector<Tensor> inputs = generated(type, ranks, 400);
    const auto set = [](Tensor& tensor, std::size_t i, double value) {
      const T typed = reference::round_to<T>(value);
      std::memcpy(tensor.bytes().data() + i * sizeof(T), &typed, sizeof(T));
    };
    for (Tensor& input : inputs) set(input, 7, 1024);  // beyond int64 from 8 ranks on
    set(inputs[0], 3, std::nan(""));
    set(inputs[0], 4, inf);
    set(inputs.back(), 5, -inf);
    std::vector<std::vector<T>> typed;
    for (const Tensor& input : inputs) {
      std::memcpy(typed.emplace_back(400).data(), input.bytes().data(), input.bytes().size());
    }
    for (const auto rounding : {proto::Rounding::kStochastic, proto::Rounding::kNearest}) {
      for (const auto reduction : {proto::Reduction::kSum, proto::Reduction::kAverage}) {
        const Tensor mine = reference_allreduce(inputs, {9, 4, rounding, -3, reduction});
        const auto other = reference::all_reduce(typed, {9, 4, rounding, -3, reduction});
        ASSERT_EQ(mine.bytes().size(), std::as_bytes(std::span(other)).size());
        EXPECT_TRUE(std::ranges::equal(mine.bytes(), std::as_bytes(std::span(other))))
            << ranks << " ranks of " << type_name(type);
      }
    }
  }
}

TEST(ToolReference, AgreesWithTheTestsOwn) {
  expect_same_reference<float>(DataType::kFloat32);
  expect_same_reference<double>(DataType::kFloat64);
  expect_same_reference<Float16>(DataType::kFloat16);
  expect_same_reference<Bfloat16>(DataType::kBfloat16);
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
  const std::vector<Tensor> tensors = generated(DataType::kFloat32, 3, 64);
  const auto inputs = floats(tensors);
  double mean = 0;
  double square = 0;
  ErrorBudget budget;
  for (std::uint64_t seed = 0; seed < draws; ++seed) {
    const Tensor result = reference_allreduce(tensors, {.seed = seed});
    budget = compare(inputs, result.values<float>(), 1, 0);
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
