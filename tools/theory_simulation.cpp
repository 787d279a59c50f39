// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/theory_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "proto/kernels.hpp"
#include "proto/packet.hpp"
#include "tools/error_budget.hpp"

namespace natagg::theory {
namespace {

constexpr std::uint64_t kSeed = 1905'10988;

double uniform(std::mt19937_64& random) {
  return std::ldexp(static_cast<double>(random() >> 11), -53);
}

double square_norm(std::span<const double> x) {
  return std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
}

}  // namespace

Error natural_of(double f, std::size_t count) {
  return natural_of(std::vector<float>(count, static_cast<float>(1 + f)), 0, 1);
}

Error natural_of(std::span<const float> values, std::uint16_t rank, int trials) {
  std::vector<std::uint8_t> bytes(values.size());
  std::vector<float> decoded(values.size());
  double squares = 0;
  Error error;
  for (const float value : values) {
    squares += double{value} * double{value};
    error.expected += tools::rounding_variance(double{value}, 0);
  }
  for (int trial = 0; trial < trials; ++trial) {
    const proto::RoundingKey key{
        .seed = kSeed, .operation = static_cast<std::uint32_t>(trial), .who = rank};
    nat8::Tally tally;
    default_kernels().encode_f32(values.data(), bytes.data(), bytes.size(), 0, key, 0, tally);
    default_kernels().decode_f32(bytes.data(), decoded.data(), bytes.size(), 0, 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = double{decoded[i]} - double{values[i]};
      error.measured += difference * difference / trials;
    }
  }
  return {.measured = error.measured / squares, .expected = error.expected / squares};
}

std::vector<double> normal_vector(std::size_t d) {
  std::mt19937_64 random(kSeed);
  std::vector<double> x(d);
  for (double& value : x) {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(random)));
    value = radius * std::cos(2 * std::numbers::pi * uniform(random));
  }
  return x;
}

std::vector<double> natural_levels(int s) {
  std::vector<double> levels{0};
  for (int k = 1 - s; k <= 0; ++k) levels.push_back(std::ldexp(1.0, k));
  return levels;
}

std::vector<double> standard_levels(int u) {
  std::vector<double> levels;
  for (int i = 0; i <= u; ++i) levels.push_back(static_cast<double>(i) / u);
  return levels;
}

Error dithering_of(std::span<const double> x, std::span<const double> levels, int trials) {
  std::mt19937_64 random(kSeed);
  const double norm = std::sqrt(square_norm(x));
  Error error;
  for (const double value : x) {
    const double y = std::fabs(value) / norm;
    const auto above = std::ranges::lower_bound(levels, y);
    const double upper = *above;
    const double lower = above == levels.begin() ? upper : *(above - 1);
    error.expected += (y - lower) * (upper - y);
    const double probability = upper > lower ? (y - lower) / (upper - lower) : 0;
    for (int trial = 0; trial < trials; ++trial) {
      const double difference = (uniform(random) < probability ? upper : lower) - y;
      error.measured += difference * difference / trials;
    }
  }
  return error;
}

Error sparsification_of(std::span<const double> x, std::size_t q, int trials) {
  std::mt19937_64 random(kSeed);
  const double scale = static_cast<double>(x.size()) / static_cast<double>(q);
  const double squares = square_norm(x);
  std::vector<double> shuffled(x.begin(), x.end());
  Error error{.measured = 0, .expected = scale - 1};
  for (int trial = 0; trial < trials; ++trial) {
    std::ranges::shuffle(shuffled, random);
    for (std::size_t i = 0; i < shuffled.size(); ++i) {
      const double difference = i < q ? (scale - 1) * shuffled[i] : shuffled[i];
      error.measured += difference * difference / squares / trials;
    }
  }
  return error;
}

std::vector<float> all_reduce(std::span<const std::vector<float>> inputs, std::uint32_t operation) {
  const std::size_t count = inputs.front().size();
  const Kernels& kernels = default_kernels();
  proto::RoundingKey key{.seed = kSeed, .operation = operation};
  std::vector<std::uint8_t> bytes(count);
  std::vector<std::int64_t> slots(count);
  nat8::Tally tally;
  for (const std::vector<float>& input : inputs) {
    kernels.encode_f32(input.data(), bytes.data(), count, 0, key, 0, tally);
    kernels.accumulate(bytes.data(), slots.data(), count);
    ++key.who;
  }
  key.who = proto::kAggregatorRank;
  kernels.recompress(slots.data(), bytes.data(), count, 0, key, tally);
  std::vector<float> result(count);
  kernels.decode_f32(bytes.data(), result.data(), count, 0, 1);
  return result;
}

}  // namespace natagg::theory
