// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Plays a scenario and judges it: every operation ends well on every rank, all ranks hold the
// reference's bits, nothing waits or leaks afterwards, and no time is wasted.
#pragma once

#include <string>
#include <vector>

#include "simulation/recording.hpp"
#include "simulation/results.hpp"
#include "simulation/scenario.hpp"
#include "simulation/world.hpp"

namespace natagg::simulation {

struct Outcome {
  std::vector<std::string> violations;      // empty: all is well
  std::vector<std::vector<float>> results;  // of each operation, as rank 0 holds them
  Time duration = 0;                        // until the last operation ended
  std::uint64_t data_packets = 0;
  std::uint64_t retransmissions = 0;
  std::uint64_t duplicate_results = 0;
  std::uint64_t multicast = 0;       // datagrams to a group, sent once each
  std::uint64_t partial_chunks = 0;  // answered without some rank
};

[[nodiscard]] Outcome play(const Scenario& scenario, const Recording& recording = {});

/// The key of `job` in scenarios that are authenticated.
[[nodiscard]] proto::JobKey job_key(std::uint32_t job);

/// How a rank of the scenario is configured, for tests that tell their own story.
[[nodiscard]] worker::StreamConfig stream_config(const Scenario& scenario, std::size_t rank,
                                                 const std::vector<proto::Endpoint>& pool);
[[nodiscard]] aggregator::ShardConfig shard_config(const Scenario& scenario);

/// Adds the scenario's aggregators.
void add_aggregators(World& world, const Scenario& scenario);

/// Adds the scenario's ranks with their scripts as workers of `job`, from now on; returns the
/// index in `world` of rank 0, after which the others follow.
std::size_t add_workers(World& world, const Scenario& scenario, std::uint32_t job = 1,
                        std::uint64_t instances = 1, Time deadline = kNever);

/// Adds one rank of them.
void add_rank(World& world, const Scenario& scenario, std::size_t rank, std::uint32_t job,
              std::uint64_t instances, Time deadline);

/// "rank 2 waits for operation 0; stream state 1", and why it failed if it did.
[[nodiscard]] std::string what_it_waits_for(const WorkerHost& host);

}  // namespace natagg::simulation
