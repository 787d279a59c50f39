// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Datagrams that nobody should have sent: garbage, fragments of real ones, strangers, and
// everything from an earlier run of the same job. They must not reach a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "simulation/story.hpp"

namespace natagg::simulation {
namespace {

constexpr proto::Endpoint kStranger{0x0A00'0909, 6666};

Scenario hostile_scenario(std::uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.network.loss = random.pick({0.0, 0.02});
  scenario.network.delay = 100 * kMicrosecond;
  scenario.aggregators = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.multicast = random.chance(0.5);
  scenario.authenticated = seed % 2 == 1;
  scenario.operations.assign(3, {.length = 20'000});
  scenario.workers.resize(3);
  for (WorkerPlan& worker : scenario.workers) {
    worker.submit_at.assign(3, 0);
    worker.window = 4;
  }
  return scenario;
}

/// Every address that a datagram can be thrown at.
std::vector<proto::Endpoint> everybody(World& world) {
  std::vector<proto::Endpoint> all;
  for (const AggregatorHost& host : world.aggregators()) {
    for (std::size_t i = 0; i < host.shards().size(); ++i) {
      all.push_back({host.first().address, static_cast<std::uint16_t>(host.first().port + i)});
    }
  }
  for (const WorkerHost& host : world.workers()) all.push_back(host.self());
  return all;
}

class Hostile : public Story {
 protected:
  Hostile() { begin(hostile_scenario(GetParam())); }

  /// Calls `attack` every 20 us until the living workers are done.
  void run_under(const std::function<void()>& attack) {
    const std::function<void()> again = [&] {
      attack();
      world_->at(world_->now() + 20 * kMicrosecond, again);
    };
    world_->at(world_->now(), again);
    EXPECT_TRUE(finish(30 * kSecond));
  }

  proto::Endpoint anybody(const std::vector<proto::Endpoint>& all) {
    return all[random_.below(all.size())];
  }

  Random random_{GetParam() + 1};
};

TEST_P(Hostile, GarbageHarmsNoResult) {
  const std::size_t first = add_workers(*world_, scenario_);
  const std::vector<proto::Endpoint> all = everybody(*world_);
  run_under([&] {
    std::vector<std::byte> datagram(random_.below(300));
    for (std::byte& byte : datagram) byte = static_cast<std::byte>(random_.bits());
    if (datagram.size() >= sizeof(proto::Header) && random_.chance(0.8)) {
      // Past the first checks, into the fields.
      proto::Header header = proto::make_header(static_cast<proto::Type>(random_.below(16)));
      header.job = proto::Be32{1};
      header.epoch = proto::Be32{static_cast<std::uint32_t>(random_.below(4))};
      header.count = proto::Be16{static_cast<std::uint16_t>(
          random_.chance(0.5) ? datagram.size() - sizeof(header) : random_.bits())};
      header.flags = static_cast<std::uint8_t>(random_.below(16));
      std::memcpy(datagram.data(), &header, sizeof(header));
    }
    world_->network().send(kStranger, anybody(all), datagram, world_->now());
  });
  expect_right(scenario_, first);
}

TEST_P(Hostile, TruncatedPacketsOfTheSameRunHarmNoResult) {
  world_->network().record(true);
  const std::size_t first = add_workers(*world_, scenario_);
  run_under([&] {
    const std::vector<Packet>& recorded = world_->network().recorded();
    if (recorded.empty()) return;
    Packet packet = recorded[random_.below(recorded.size())];
    if (packet.datagram.empty()) return;
    packet.datagram.resize(random_.below(packet.datagram.size()));
    // Whole control packets may be left of padded ones; those are duplicates, which are allowed.
    world_->network().record(false);
    world_->network().send(packet.from, packet.to, packet.datagram, world_->now());
    world_->network().record(true);
  });
  expect_right(scenario_, first);
}

TEST_P(Hostile, AStrangerWhoCopiesPacketsIsNotTakenForAMember) {
  world_->network().record(true);
  const std::size_t first = add_workers(*world_, scenario_);
  run_under([&] {
    const std::vector<Packet>& recorded = world_->network().recorded();
    if (recorded.empty()) return;
    Packet packet = recorded[random_.below(recorded.size())];
    const proto::Reject reject = proto::validate(packet.datagram, proto::Keys::kSome);
    if (reject != proto::Reject::kNone) return;
    const proto::Type type = proto::read_header(packet.datagram).type;
    // Without authentication anyone may join under a free rank; a member's packets are safe.
    if (type == proto::Type::kJoin || type == proto::Type::kHello) return;
    if (packet.datagram.size() > sizeof(proto::Header)) packet.datagram.back() = std::byte{0};
    world_->network().record(false);
    world_->network().send(kStranger, packet.to, packet.datagram, world_->now());
    world_->network().record(true);
  });
  expect_right(scenario_, first);
}

TEST_P(Hostile, PacketsOfAnEarlierRunAreNeverMixedIn) {
  world_->network().record(true);
  add_workers(*world_, scenario_);
  for (WorkerHost& host : world_->workers()) host.close_when_done();
  const auto over = [&] { return world_->workers_closed() && world_->aggregators_idle(); };
  ASSERT_TRUE(run_until(over, 30 * kSecond));
  world_->network().record(false);
  const std::vector<Packet> earlier = world_->network().recorded();

  // Another run of the same job from the same addresses, with other data.
  scenario_.seed += 1'000;
  const std::size_t first = world_->workers().size();
  for (WorkerHost& host : world_->workers()) host.vanish();
  for (std::size_t rank = 0; rank < scenario_.workers.size(); ++rank) {
    worker::StreamConfig config = stream_config(scenario_, rank, world_->pool());
    config.job = 1;
    config.instance = 2'000 + rank;
    if (config.key) {
      config.key = std::make_shared<proto::JobKey>(job_key(1));
      config.entropy[0] ^= 1;
    }
    WorkerHost& host = world_->add_worker(config, world_->worker(rank).self(), world_->now());
    for (std::size_t i = 0; i < scenario_.operations.size(); ++i) {
      Job job;
      job.operation.length = scenario_.operations[i].length;
      job.input = input(scenario_, i, rank);
      host.add_job(std::move(job));
    }
  }
  const auto ready_or_gone = [](const WorkerHost& host) { return !host.alive() || ready(host); };
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(world_->workers(), ready_or_gone); },
                        10 * kSecond));
  run_under([&] {
    const Packet& packet = earlier[random_.below(earlier.size())];
    world_->network().send(packet.from, packet.to, packet.datagram, world_->now());
  });
  expect_right(scenario_, first);
}

TEST_P(Hostile, TwoJobsShareTheShardsWithoutTouchingEachOther) {
  const std::size_t first = add_workers(*world_, scenario_, 1, 1);
  Scenario other = hostile_scenario(GetParam() + 1'000);
  other.workers.resize(2);
  const std::size_t second = add_workers(*world_, other, 257, 2);  // the same multicast group
  EXPECT_TRUE(finish(30 * kSecond));
  expect_right(scenario_, first);
  expect_right(other, second);
  for (WorkerHost& host : world_->workers()) host.close_when_done();
  const auto over = [&] { return world_->workers_closed() && world_->aggregators_idle(); };
  EXPECT_TRUE(run_until(over, 10 * kSecond));
  expect_none(world_->violations());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Hostile, testing::Range<std::uint64_t>(0, story_seeds()));

}  // namespace
}  // namespace natagg::simulation
