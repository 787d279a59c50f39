// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/drawn_seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kDefaultSeeds = 10'000;
constexpr std::uint64_t kEverySeed = ~std::uint64_t{0};
constexpr int kMostReports = 5;

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

void play_seeds(std::uint64_t one_in, const std::function<std::string(std::uint64_t)>& play) {
  std::uint64_t first = number("NATAGG_SIM_FIRST", 0);
  std::uint64_t count =
      std::max<std::uint64_t>(1, number("NATAGG_SIM_SEEDS", kDefaultSeeds) / one_in);
  if (const std::uint64_t one = number("NATAGG_SIM_SEED", kEverySeed); one != kEverySeed) {
    first = one;
    count = 1;
  }
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < kMostReports; ++seed) {
    const std::string wrong = play(seed);
    if (wrong.empty()) continue;
    ++failures;
    ADD_FAILURE() << "replay with NATAGG_SIM_SEED=" << seed << "\n  " << wrong;
  }
}

}  // namespace natagg::simulation
