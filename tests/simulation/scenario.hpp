// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Everything about one simulated job: its ranks, aggregators, network and all-reduces. Drawn from
// a seed it covers the protocol's corners: wraps, sizes around a packet, tiny windows, late ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/operation.hpp"
#include "proto/rounding.hpp"
#include "simulation/network.hpp"
#include "simulation/random.hpp"

namespace natagg::simulation {

/// What a rank's values look like.
enum class Values : std::uint8_t {
  kGradients,  // spread over 20 powers of two around the window's middle
  kSparse,     // mostly zeros
  kHuge,       // at and above the window, so that sums leave int64
  kTiny,       // at and below the window, down to denormals
  kSpecials,   // gradients with some Inf and NaN
  kAnyBits,    // any 32 bits
};

struct OperationPlan {
  std::uint64_t length = 0;
  proto::DataType type = proto::DataType::kFloat32;  // others only where they must not complete
  proto::Reduction reduction = proto::Reduction::kSum;
  Values values = Values::kGradients;
  bool in_place = false;

  bool operator==(const OperationPlan&) const = default;
};

struct WorkerPlan {
  Time start = 0;               // after the world's beginning
  std::vector<Time> submit_at;  // of each operation, likewise; not decreasing
  std::size_t mtu = 1500;       // of the host's link
  std::size_t path_mtu = 1500;  // of what lies behind it
  std::uint16_t window = 256;
  std::size_t in_flight = 256;
  std::uint16_t lanes = 1;  // at most
  bool segments = false;    // the host sends several datagrams as one packet ...
  bool path_cuts = true;    // ... which are cut apart before they arrive
  bool hears_multicast = true;
  std::string kernels;  // empty: the default
  Time pause_from = kNever;
  Time pause_to = kNever;

  bool operator==(const WorkerPlan&) const = default;
};

struct Scenario {
  std::uint64_t seed = 0;  // of the network's faults, the values and the job
  NetworkConfig network;
  std::uint16_t aggregators = 1;
  std::uint16_t shards = 1;  // of each
  std::uint16_t max_values = 8832;
  std::uint16_t max_window = 256;
  std::uint16_t max_jobs = 16;
  std::uint16_t max_workers = 1024;
  bool multicast = false;  // the aggregators offer it
  std::uint32_t first_sequence = 0;
  std::uint32_t first_epoch = 1;
  std::string aggregator_kernels;
  std::uint16_t values = 0;  // a packet; 0: negotiated
  std::uint32_t first_operation = 0;
  proto::Rounding rounding = proto::Rounding::kStochastic;
  int shift = 0;
  std::vector<std::size_t> pool;  // the job's aggregators of the world's; empty: all
  Time connect_within = kNever;   // of each rank's start
  bool one_at_a_time = false;     // each rank waits for an operation before it submits the next
  Time straggler_deadline = 0;    // 0: no result is partial
  std::uint16_t quorum = 0;
  bool authenticated = false;  // the job has a key
  bool close_early = false;    // each rank leaves as soon as its own operations are done
  std::vector<OperationPlan> operations;
  std::vector<WorkerPlan> workers;

  bool operator==(const Scenario&) const = default;
};

/// The scenario that `seed` stands for.
[[nodiscard]] Scenario draw(std::uint64_t seed);

/// Gives some ranks several lanes; of the scenario's seed, and of nothing else.
void draw_lanes(Scenario& scenario);

/// Lets some ranks send several datagrams as one packet, on paths that cut them up or do not; of
/// the scenario's seed, and of nothing else.
void draw_segmentation(Scenario& scenario);

/// Lets most of the scenario's operations go on without ranks that are late.
void draw_stragglers(Random& random, Scenario& scenario);

/// `rank`'s values for operation number `index`; a function of the scenario's seed, not of its
/// layout.
[[nodiscard]] std::vector<float> input(const Scenario& scenario, std::size_t index,
                                       std::size_t rank);

/// One line.
[[nodiscard]] std::string to_string(const Scenario& scenario);
/// "lengths 700, 9000 in place".
[[nodiscard]] std::string operations_to_string(const Scenario& scenario);

/// How many seeds each of the told stories plays: one in 1,000 of NATAGG_SIM_SEEDS (default
/// 10,000), but 10 where one in 50 are as many, and one in 50 where they are fewer, as with
/// sanitizers.
[[nodiscard]] std::uint64_t story_seeds();

}  // namespace natagg::simulation
