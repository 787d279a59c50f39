// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Ranks on links of a limited speed: n of them send to one aggregator at the same time, before
// which a queue overflows, or packets are lost at random. How close to the links' speed are they?
#include <gtest/gtest.h>

#include <cstdio>

#include "simulation/play.hpp"

namespace natagg::simulation {
namespace {

constexpr std::int64_t kMbit = 1'000'000;
constexpr std::int64_t kGbit = 1'000 * kMbit;
constexpr std::size_t kOverhead = sizeof(proto::Header) + 38 + 28;  // link.hpp

struct Case {
  std::size_t world = 8;
  std::int64_t worker_link = 10 * kGbit;
  std::int64_t aggregator_link = 10 * kGbit;
  std::size_t queue = 1'000;
  std::size_t mark = SIZE_MAX;
  std::uint16_t values = 1'408;
  std::uint64_t chunks = 300;
  double loss = 0;
  std::uint64_t seed = 1;
};

struct Figures {
  double efficiency = 0;  // the time that the slowest link takes, over the time that it took
  Time duration = 0;
  std::uint64_t lost = 0;
  std::uint64_t retransmissions = 0;
};

bool all_ready(World& world) {
  return std::ranges::all_of(world.workers(), [](const WorkerHost& host) { return host.ready(); });
}

Figures measure(const Case& c) {
  Scenario scenario;
  scenario.seed = c.seed;
  scenario.multicast = true;
  scenario.values = c.values;
  scenario.network.jitter = 10 * kMicrosecond;
  scenario.operations.assign(1, {.length = c.chunks * c.values});
  scenario.workers.resize(c.world);
  for (WorkerPlan& worker : scenario.workers) {
    worker.submit_at = {20 * kMillisecond};  // once all have joined
    worker.mtu = worker.path_mtu = 9'000;
  }
  World world(scenario.network, scenario.seed);
  add_aggregators(world, scenario);
  const Time submitted = world.now() + 20 * kMillisecond;
  add_workers(world, scenario);
  for (const WorkerHost& host : world.workers()) {
    world.network().set_link(host.self().address, {c.worker_link});
  }
  world.network().set_link(world.aggregator(0).first().address,
                           {c.aggregator_link, c.queue, c.mark});
  EXPECT_TRUE(world.run_until([&] { return all_ready(world); }, submitted - 1));
  NetworkConfig lossy = scenario.network;
  lossy.loss = c.loss;
  world.network().configure(lossy);
  EXPECT_TRUE(world.run_until([&] { return world.workers_done(); }, submitted + 60 * kSecond));
  for (const std::string& violation : check_results(world, scenario, 0)) ADD_FAILURE() << violation;

  const auto world_size = static_cast<std::int64_t>(c.world);
  const std::int64_t slowest = std::min(c.worker_link, c.aggregator_link / world_size);
  const auto bits = static_cast<std::int64_t>(c.chunks * (c.values + kOverhead) * 8);
  Figures figures;
  figures.duration = world.now() - submitted;
  figures.efficiency = static_cast<double>(bits) / static_cast<double>(slowest) * 1e9 /
                       static_cast<double>(figures.duration);
  figures.lost = world.network().stats().queue_full + world.network().stats().lost;
  for (const WorkerHost& host : world.workers()) {
    figures.retransmissions += host.stream().stats().retransmissions;
  }
  std::printf("n = %zu, %.3f of the link, %.3f ms, %llu lost, %llu sent again\n", c.world,
              figures.efficiency, static_cast<double>(figures.duration) * 1e-6,
              static_cast<unsigned long long>(figures.lost),
              static_cast<unsigned long long>(figures.retransmissions));
  return figures;
}

TEST(Incast, LinksAreFilledWithoutOverflowWhereTheQueueHoldsAWindowOfEachRank) {
  for (const std::size_t world : {1U, 2U, 4U, 8U}) {
    const Figures figures = measure({.world = world});
    EXPECT_GT(figures.efficiency, world == 1 ? 0.7 : 0.9);  // one is done before it is up to speed
    EXPECT_EQ(figures.lost, 0U);
    EXPECT_EQ(figures.retransmissions, 0U);
  }
}

TEST(Incast, SlowLinksAreFilled) {
  EXPECT_GT(measure({.worker_link = 200 * kMbit, .aggregator_link = 1'600 * kMbit}).efficiency,
            0.97);
  EXPECT_GT(
      measure({.worker_link = kGbit, .aggregator_link = 8 * kGbit, .values = 8'832, .chunks = 100})
          .efficiency,
      0.97);
}

TEST(Incast, WhatOverflowsAShortQueueIsSentAgainByThoseWhoLostItAtOnce) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    for (const std::size_t world : {8U, 16U}) {
      const Figures figures = measure({.world = world, .queue = 200, .chunks = 400, .seed = seed});
      EXPECT_GT(figures.lost, 100U);
      EXPECT_LT(figures.retransmissions, 2 * figures.lost);
      EXPECT_LT(figures.duration, 60 * kMillisecond);  // of which the links take 4 or 8
    }
  }
}

TEST(Incast, MarksOfAShortQueueKeepItFromOverflowing) {
  for (const std::uint64_t seed : {1U, 2U}) {
    Case c{.world = 16, .queue = 200, .chunks = 600, .seed = seed};
    const Figures without = measure(c);
    c.mark = 50;
    const Figures with = measure(c);
    EXPECT_LT(with.lost * 3, without.lost * 2);  // the rest: of the first, doubling rounds
    EXPECT_LT(with.retransmissions, without.retransmissions);
    EXPECT_GT(with.efficiency, 0.8);
  }
}

TEST(Incast, RandomLossCostsLittle) {
  const Case clean{.worker_link = 200 * kMbit, .aggregator_link = 1'600 * kMbit, .chunks = 1'000};
  const Time without = measure(clean).duration;
  for (const auto& [loss, most] : {std::pair{0.001, 1.02}, std::pair{0.01, 1.15}}) {
    Case lossy = clean;
    lossy.loss = loss;
    const Figures figures = measure(lossy);
    EXPECT_LT(static_cast<double>(figures.duration), most * static_cast<double>(without)) << loss;
  }
}

}  // namespace
}  // namespace natagg::simulation
