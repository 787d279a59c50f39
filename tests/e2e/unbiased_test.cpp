// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Stochastic rounding has no bias: over many job seeds, the results of real gradients, all-reduced
// by the shipped state machines, average to the exact sum.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "simulation/world.hpp"

namespace natagg::simulation {
namespace {

constexpr std::size_t kWorld = 4;
constexpr std::size_t kElements = 2'000;
constexpr std::size_t kSeeds = 1'000;
constexpr std::size_t kStride = 53;  // takes elements from all layers of the network

using Inputs = std::array<std::vector<float>, kWorld>;

std::vector<float> read_gradient(std::size_t rank) {
  const char* folder = std::getenv("NATAGG_TEST_DATA");
  const std::string path = std::string(folder == nullptr ? "tests/data" : folder) +
                           "/step400.rank" + std::to_string(rank) + ".f32";
  std::ifstream file(path, std::ios::binary);
  std::vector<float> values(215'370);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  EXPECT_TRUE(file) << path;
  return values;
}

/// Elements spread over the gradients in which some rank has a value other than zero.
Inputs sample_gradients() {
  Inputs all;
  for (std::size_t rank = 0; rank < kWorld; ++rank) all[rank] = read_gradient(rank);
  Inputs sample;
  for (std::size_t i = 0; i < all[0].size() && sample[0].size() < kElements; i += kStride) {
    bool any = false;
    for (const std::vector<float>& values : all) any |= values[i] != 0.0F;
    for (std::size_t rank = 0; any && rank < kWorld; ++rank) sample[rank].push_back(all[rank][i]);
  }
  return sample;
}

/// The two powers of two around a value, and the probability of the one farther from zero.
struct Choice {
  std::array<double, 2> outcomes{};
  double probability_up = 0;

  explicit Choice(double value) {
    if (value == 0) return;
    const double low = std::copysign(std::exp2(std::ilogb(value)), value);
    outcomes = {low, 2 * low};
    probability_up = value / low - 1;
  }
  [[nodiscard]] double probability(std::size_t which) const {
    return which == 0 ? 1 - probability_up : probability_up;
  }
};

/// The variance of the result of one element, over all that the dice can show.
double exact_variance(const Inputs& inputs, std::size_t element) {
  double exact = 0;
  double second_moment = 0;
  for (const std::vector<float>& values : inputs) exact += double{values[element]};
  for (std::size_t faces = 0; faces < 1U << kWorld; ++faces) {
    double probability = 1;
    double sum = 0;
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
      const Choice choice(double{inputs[rank][element]});
      probability *= choice.probability(faces >> rank & 1);
      sum += choice.outcomes[faces >> rank & 1];
    }
    const Choice result(sum);
    for (const std::size_t up : {0U, 1U}) {
      second_moment +=
          probability * result.probability(up) * result.outcomes[up] * result.outcomes[up];
    }
  }
  return second_moment - exact * exact;
}

/// What rank 0 receives in a job of that seed: one aggregator, two shards, no losses.
std::vector<float> all_reduce(const Inputs& inputs, std::uint64_t seed) {
  World world;
  world.add_aggregator({}, 2);
  for (std::size_t rank = 0; rank < kWorld; ++rank) {
    worker::StreamConfig config;
    config.aggregators = world.pool();
    config.rank = static_cast<std::uint16_t>(rank);
    config.world = kWorld;
    config.seed = seed;
    config.instance = rank + 1;
    Job job;
    job.operation.length = inputs[rank].size();
    job.input = inputs[rank];
    job.submit_at = world.now();
    world.add_worker(config, world.now()).add_job(std::move(job));
  }
  EXPECT_TRUE(world.run_until([&] { return world.workers_done(); }, world.now() + kSecond));
  EXPECT_EQ(world.worker(0).jobs()[0].status, NATAGG_OK);
  return world.worker(0).jobs()[0].output;
}

TEST(StochasticRounding, AveragesToTheExactSumOfRealGradientsWithTheVarianceOfTheory) {
  const Inputs inputs = sample_gradients();
  ASSERT_EQ(inputs[0].size(), kElements);
  std::vector<double> exact(kElements);
  std::vector<double> total(kElements);
  std::vector<double> squared_error(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    for (const std::vector<float>& values : inputs) exact[i] += double{values[i]};
  }
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<float> result = all_reduce(inputs, seed);
    for (std::size_t i = 0; i < kElements; ++i) {
      const double error = double{result[i]} - exact[i];
      total[i] += double{result[i]};
      squared_error[i] += error * error;
    }
  }

  std::size_t near = 0;
  double observed = 0;
  double predicted = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    const double variance = exact_variance(inputs, i);
    const double standard_error = std::sqrt(variance / double{kSeeds});
    near += std::abs(total[i] / double{kSeeds} - exact[i]) <= 5 * standard_error ? 1 : 0;
    observed += squared_error[i] / double{kSeeds};
    predicted += variance;
  }
  EXPECT_GE(near, kElements - kElements / 1'000);
  EXPECT_NEAR(observed / predicted, 1, 0.03);
  RecordProperty("WithinFiveStandardErrors", static_cast<int>(near));
  RecordProperty("SquaredErrorOverTheory", std::to_string(observed / predicted));
}

}  // namespace
}  // namespace natagg::simulation
