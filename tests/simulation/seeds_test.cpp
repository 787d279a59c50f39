// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Thousands of jobs drawn from seeds, as drawn_seeds.hpp says, each on aggregators of its own.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "simulation/drawn_seeds.hpp"
#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

struct DrawnJob {
  Scenario scenario;
  Outcome* total = nullptr;

  bool operator==(const DrawnJob&) const = default;

  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const {
    const Outcome outcome = simulation::play(scenario, recording);
    total->data_packets += outcome.data_packets;
    total->retransmissions += outcome.retransmissions;
    total->multicast += outcome.multicast;
    total->partial_chunks += outcome.partial_chunks;
    return outcome.violations;
  }
  [[nodiscard]] Simplifications<DrawnJob> simplifications() const {
    Simplifications<DrawnJob> steps;
    append_of_part<DrawnJob, Scenario>(steps, simulation::simplifications(scenario),
                                       [](DrawnJob& job) { return &job.scenario; });
    return steps;
  }
  [[nodiscard]] std::string describe() const { return to_string(scenario); }
};

TEST(Seeds, EveryRankGetsTheReferencesBitsAndNothingIsLeftWaiting) {
  Outcome total;
  play_seeds<DrawnJob>(playing_from_environment(1), [&total](std::uint64_t seed) {
    return DrawnJob{.scenario = draw(seed), .total = &total};
  });
  std::cout << total.data_packets << " DATA packets, " << total.retransmissions
            << " of them retransmissions; " << total.multicast << " datagrams by multicast; "
            << total.partial_chunks << " chunks without some rank\n";
}

}  // namespace
}  // namespace natagg::simulation
