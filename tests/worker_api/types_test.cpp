// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Every type of values through the public interface, against the definition bit by bit.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "support/loopback_aggregator.hpp"
#include "support/reference.hpp"
#include "worker_api/support.hpp"

namespace natagg::testing {
namespace {

static_assert(Values<std::array<double, 3>&> && MutableValues<std::span<Float16>>);
static_assert(!Values<std::vector<int>&> && !Values<std::vector<std::uint16_t>&>);
static_assert(!Values<std::vector<float>>, "a temporary's memory would be gone too early");
static_assert(Values<const std::vector<float>&> && !MutableValues<const std::vector<float>&>);
static_assert(!MutableValuesLike<std::span<double>, std::span<float>>);

constexpr double kInf = std::numeric_limits<double>::infinity();

template <Value T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Any bits at all, and values from below the window of exponents to above it.
template <Value T>
std::vector<T> anything(std::uint64_t seed, std::size_t length) {
  std::mt19937_64 random(seed);
  std::vector<T> values(length);
  for (T& value : values) {
    const std::uint64_t bits = random();
    const double significand = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
    const auto exponent = static_cast<int>(bits / 8 % 65) - 52;
    const double sign = bits / 4 % 2 == 0 ? 1 : -1;
    value = bits % 4 == 0 ? from_bits<T>(random())
                          : reference::round_to<T>(sign * std::ldexp(significand, exponent));
  }
  return values;
}

template <Value T>
std::vector<T> from_doubles(const std::vector<double>& doubles) {
  std::vector<T> values;
  for (const double value : doubles) values.push_back(reference::round_to<T>(value));
  return values;
}

constexpr std::array<std::size_t, 8> kLengths{0, 1, 127, 128, 1407, 1408, 1409, 5000};
constexpr std::size_t kOperations = 4 * kLengths.size();  // each length in every form

constexpr Reduction reduction_of(std::size_t operation) {
  return operation % 2 == 0 ? Reduction::kSum : Reduction::kAverage;
}
constexpr bool is_in_place(std::size_t operation) {
  return operation / 2 % 2 != 0;
}

/// inputs[i][r] are rank r's values for operation i.
template <Value T>
using Inputs = std::vector<std::vector<std::vector<T>>>;

template <Value T>
Inputs<T> draw_inputs(std::uint32_t world) {
  Inputs<T> inputs(kOperations);
  for (std::size_t i = 0; i < kOperations; ++i) {
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      inputs[i].push_back(anything<T>(100 * i + rank, kLengths[i / 4]));
    }
  }
  return inputs;
}

/// One rank's results of all operations, in flight at once.
template <Value T>
std::vector<std::vector<T>> run(Worker& worker, const Inputs<T>& inputs, std::uint32_t rank) {
  std::vector<std::vector<T>> results(kOperations);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < kOperations; ++i) {
    const std::vector<T>& input = inputs[i][rank];
    if (is_in_place(i)) {
      results[i] = input;
      requests.push_back(worker.allreduce_async(results[i], reduction_of(i)));
    } else {
      results[i].resize(input.size());
      requests.push_back(worker.allreduce_async(input, results[i], reduction_of(i)));
    }
  }
  for (const Request& request : requests) request.wait();
  return results;
}

template <typename T>
class EveryType : public ::testing::Test {
 protected:
  static void expect_bits_of_the_definition(std::uint32_t world, Options options) {
    const LoopbackAggregator aggregator(2);
    options.aggregators = aggregator.address();
    options.values_per_packet = 1408;
    const Inputs<T> inputs = draw_inputs<T>(world);
    std::vector<std::vector<std::vector<T>>> results(world);
    std::vector<Worker> workers = connect_all(world, options);
    on_all_ranks(world,
                 [&](std::uint32_t rank) { results[rank] = run(workers[rank], inputs, rank); });
    for (std::size_t i = 0; i < kOperations; ++i) {
      const auto expected = bits_of(reference::all_reduce(
          inputs[i], {.seed = options.seed,
                      .operation = static_cast<std::uint32_t>(i),
                      .rounding = static_cast<proto::Rounding>(options.rounding),
                      .shift = options.shift,
                      .reduction = static_cast<proto::Reduction>(reduction_of(i))}));
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        EXPECT_EQ(bits_of(results[rank][i]), expected)
            << "rank " << rank << " of " << world << ", operation " << i;
      }
    }
  }

  /// What both of two ranks get of `values` that both of them have.
  static std::vector<T> doubled(std::vector<T> values, Reduction reduction, int shift) {
    const LoopbackAggregator aggregator(1);
    std::vector<std::vector<T>> results(2, values);
    std::vector<Worker> workers = connect_all(
        2, {.aggregators = aggregator.address(), .rounding = Rounding::kNearest, .shift = shift});
    on_all_ranks(2, [&](std::uint32_t rank) { workers[rank].allreduce(results[rank], reduction); });
    EXPECT_EQ(bits_of(results[0]), bits_of(results[1]));
    return results[0];
  }
};

using AllTypes = ::testing::Types<float, double, Float16, Bfloat16>;
TYPED_TEST_SUITE(EveryType, AllTypes);

TYPED_TEST(EveryType, GivesTheBitsOfTheDefinitionForOneRank) {
  this->expect_bits_of_the_definition(1, {.seed = 3});
}

TYPED_TEST(EveryType, GivesTheBitsOfTheDefinitionForTwoRanks) {
  this->expect_bits_of_the_definition(2, {.seed = 4});
}

TYPED_TEST(EveryType, GivesTheBitsOfTheDefinitionForThreeRanks) {
  this->expect_bits_of_the_definition(3, {.seed = 5});
}

TYPED_TEST(EveryType, GivesTheBitsOfTheDefinitionInAShiftedWindow) {
  this->expect_bits_of_the_definition(3, {.rounding = Rounding::kNearest, .shift = 9});
  this->expect_bits_of_the_definition(2, {.seed = 6, .shift = -64});
}

TYPED_TEST(EveryType, CarriesSpecialsAndTheWindowsEnds) {
  const auto smallest = from_bits<TypeParam>(1);
  std::vector<TypeParam> values =
      from_doubles<TypeParam>({1, -0.5, kInf, -kInf, std::nan(""), 1536, 0x1p-60, -0.0, 0x1p-14});
  values.push_back(smallest);
  std::vector<TypeParam> expected =
      from_doubles<TypeParam>({2, -1, kInf, -kInf, std::nan(""), 1024, 0, 0, 0x1p-13});
  // Only float16's smallest denormal, 2^-24, is in the window.
  expected.push_back(sizeof smallest == 2 && reference::to_double(smallest) == 0x1p-24
                         ? from_bits<TypeParam>(2)
                         : TypeParam{});
  EXPECT_EQ(bits_of(this->doubled(values, Reduction::kSum, 0)), bits_of(expected));
}

TYPED_TEST(EveryType, OverflowsToInfinityWhereItsRangeEnds) {
  constexpr bool narrow = std::is_same_v<TypeParam, Float16>;
  const auto values = from_doubles<TypeParam>({40'000, -40'000, 60'000, 0.25});
  const double two_to_16 = narrow ? kInf : 65'536;  // float16 ends at 65,504
  EXPECT_EQ(bits_of(this->doubled(values, Reduction::kSum, 10)),
            bits_of(from_doubles<TypeParam>({two_to_16, -two_to_16, 2 * two_to_16, 0.5})));
  EXPECT_EQ(bits_of(this->doubled(values, Reduction::kAverage, 10)),
            bits_of(from_doubles<TypeParam>({32'768, -32'768, two_to_16, 0.25})));
}

TYPED_TEST(EveryType, IsTheSameWhenItIsNamedAtRunTime) {
  const LoopbackAggregator aggregator(1);
  Worker worker({.aggregators = aggregator.address()});
  const auto values = from_doubles<TypeParam>({1, -2, 0.125, kInf});
  std::vector<TypeParam> result(values.size());
  worker.allreduce(values.data(), result.data(), values.size(), kTypeOf<TypeParam>);
  EXPECT_EQ(bits_of(result), bits_of(values));  // powers of two stay what they are
}

TEST(Float64, KeepsToTheWindowBeyondFloat32sRange) {
  const LoopbackAggregator aggregator(1);
  Worker worker({.aggregators = aggregator.address()});
  std::array values{1e300, -1e300, 1e-300, 4.9e-324};
  worker.allreduce(values);
  EXPECT_EQ(values, (std::array{1024.0, -1024.0, 0.0, 0.0}));
  EXPECT_EQ(worker.statistics().values_clipped, 2U);
  EXPECT_EQ(worker.statistics().values_flushed, 2U);
}

}  // namespace
}  // namespace natagg::testing
