// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Natural compression is unbiased, and its relative variance is what theory says: f(1-f)/(1+f)^2
// for a magnitude 2^k (1+f), at most 1/8, at f = 1/3.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "proto/kernels.hpp"

namespace natagg {
namespace {

constexpr std::size_t kSamples = 1 << 21;

struct Moments {
  double mean = 0;
  double variance = 0;  // of one sample
};

/// In units of code 0.
Moments moments(const std::vector<std::uint8_t>& bytes) {
  double sum = 0;
  double squares = 0;
  for (const std::uint8_t byte : bytes) {
    const auto value = static_cast<double>(nat8::addend(byte));
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(bytes.size());
  const double mean = sum / n;
  return {mean, squares / n - mean * mean};
}

/// Five standard errors of the samples' mean, for a value `u` in units of code 0.
double five_standard_errors(double u) {
  const double magnitude = std::fabs(u);
  const double lower = magnitude < 1 ? 0 : std::exp2(std::floor(std::log2(magnitude)));
  const double upper = magnitude < 1 ? 1 : 2 * lower;
  const double variance = (magnitude - lower) * (upper - magnitude);
  return 5 * std::sqrt(variance / kSamples);
}

Moments encoded(float value, std::uint16_t rank) {
  const std::vector<float> values(kSamples, value);
  std::vector<std::uint8_t> bytes(kSamples);
  nat8::Tally tally;
  const proto::RoundingKey key{.seed = 42, .operation = 5, .who = rank};
  default_kernels().encode_f32(values.data(), bytes.data(), kSamples, 0, key, 0, tally);
  return moments(bytes);
}

TEST(Statistics, EncodingIsUnbiasedToFiveStandardErrors) {
  std::uint16_t rank = 0;
  for (const float value : {1.25F, 4.0F / 3, -1.999F, 3e-15F, 1000.0F, std::ldexp(0.3F, -50),
                            std::ldexp(1 + 0x1p-20F, -7)}) {
    const double u = std::ldexp(double{value}, -nat8::kMinExponent);
    EXPECT_LT(std::fabs(encoded(value, rank++).mean - u), five_standard_errors(u)) << value;
  }
}

TEST(Statistics, VarianceIsOneEighthAtFourThirdsAndLessElsewhere) {
  const auto relative_variance = [](float value) {
    const double u = std::ldexp(double{value}, -nat8::kMinExponent);
    return encoded(value, 9).variance / (u * u);
  };
  EXPECT_NEAR(relative_variance(4.0F / 3), 1.0 / 8, 1e-3 / 8);
  EXPECT_NEAR(relative_variance(1.1F), 0.1 * 0.9 / (1.1 * 1.1), 1e-3);
  EXPECT_NEAR(relative_variance(1.75F), 0.75 * 0.25 / (1.75 * 1.75), 1e-3);
  EXPECT_EQ(relative_variance(2.0F), 0);
}

TEST(Statistics, RecompressionIsUnbiasedToFiveStandardErrors) {
  std::uint32_t operation = 0;
  for (const std::int64_t sum :
       {std::int64_t{3}, std::int64_t{-5}, std::int64_t{1'000'003}, (std::int64_t{1} << 59) + 12345,
        (std::int64_t{1} << 51) / 3 * 4}) {
    const std::vector<std::int64_t> slots(kSamples, sum);
    std::vector<std::uint8_t> bytes(kSamples);
    nat8::Tally tally;
    const proto::RoundingKey key{.seed = 43, .operation = operation++, .who = 0xFFFF};
    default_kernels().recompress(slots.data(), bytes.data(), kSamples, 0, key, tally);
    const auto u = static_cast<double>(sum);
    EXPECT_LT(std::fabs(moments(bytes).mean - u), five_standard_errors(u)) << sum;
  }
}

TEST(Statistics, RanksRoundIndependently) {
  // Products of two ranks' deviations from the mean of 1.5, each +-1/2.
  const std::vector<float> values(kSamples, 1.5F);
  std::vector<std::uint8_t> a(kSamples);
  std::vector<std::uint8_t> b(kSamples);
  nat8::Tally tally;
  default_kernels().encode_f32(values.data(), a.data(), kSamples, 0, {.seed = 44, .who = 0}, 0,
                               tally);
  default_kernels().encode_f32(values.data(), b.data(), kSamples, 0, {.seed = 44, .who = 1}, 0,
                               tally);
  int between_ranks = 0;
  int between_neighbours = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    between_ranks += a[i] == b[i] ? 1 : -1;
    if (i > 0) between_neighbours += a[i] == a[i - 1] ? 1 : -1;
  }
  const double bound = 5 * std::sqrt(double{kSamples});
  EXPECT_LT(std::abs(between_ranks), bound);
  EXPECT_LT(std::abs(between_neighbours), bound);
}

}  // namespace
}  // namespace natagg
