// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Thousands of scenarios drawn from seeds. NATAGG_SIM_SEEDS says how many (default 10,000);
// NATAGG_SIM_PART=i/k plays every k-th of them, from i; NATAGG_SIM_SEED=s plays seed s alone and
// prints every datagram. NATAGG_SIM_TRACE=file.pcap makes a trace for natagg-replay of that seed,
// or of the first that fails.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kDefaultSeeds = 10'000;
constexpr int kMaxReports = 10;  // failing seeds to print before giving up

std::optional<std::uint64_t> number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

/// Empty: none is wanted.
std::string capture_from_environment() {
  const char* path = std::getenv("NATAGG_SIM_TRACE");
  return path == nullptr ? "" : path;
}

struct Part {
  std::uint64_t first = 0;
  std::uint64_t step = 1;
};

Part part_from_environment() {
  Part part;
  const char* text = std::getenv("NATAGG_SIM_PART");
  if (text == nullptr) return part;
  char slash = '/';
  std::istringstream(text) >> part.first >> slash >> part.step;
  return part;
}

std::string report(std::uint64_t seed, const Scenario& scenario, const Outcome& outcome) {
  std::ostringstream text;
  text << "replay with NATAGG_SIM_SEED=" << seed << "\n  " << to_string(scenario);
  for (const std::string& violation : outcome.violations) text << "\n  " << violation;
  return text.str();
}

TEST(Seeds, EveryRankGetsTheReferencesBitsAndNothingIsLeftWaiting) {
  if (const auto seed = number_from_environment("NATAGG_SIM_SEED")) {
    const Scenario scenario = draw(*seed);
    const Outcome outcome = play(scenario, &std::cout, capture_from_environment());
    std::cout << to_string(scenario) << '\n';
    EXPECT_TRUE(outcome.violations.empty()) << report(*seed, scenario, outcome);
    return;
  }
  const std::uint64_t seeds = number_from_environment("NATAGG_SIM_SEEDS").value_or(kDefaultSeeds);
  const Part part = part_from_environment();
  int failures = 0;
  Outcome total;
  for (std::uint64_t seed = part.first; seed < seeds && failures < kMaxReports; seed += part.step) {
    const Scenario scenario = draw(seed);
    const Outcome outcome = play(scenario);
    total.data_packets += outcome.data_packets;
    total.retransmissions += outcome.retransmissions;
    total.multicast += outcome.multicast;
    total.partial_chunks += outcome.partial_chunks;
    if (outcome.violations.empty()) continue;
    if (++failures == 1) static_cast<void>(play(scenario, nullptr, capture_from_environment()));
    ADD_FAILURE() << report(seed, scenario, outcome);
  }
  std::cout << total.data_packets << " DATA packets, " << total.retransmissions
            << " of them retransmissions; " << total.multicast << " datagrams by multicast; "
            << total.partial_chunks << " chunks without some rank\n";
}

}  // namespace
}  // namespace natagg::simulation
