// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/scenario.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "proto/kernels.hpp"
#include "proto/nat8.hpp"
#include "simulation/random.hpp"

namespace natagg::simulation {
namespace {

// One seed in so many. Not 2 or a multiple: the seeds are played in two parts.
constexpr std::uint64_t kAuthenticated = 5;
constexpr std::uint64_t kStraggling = 7;

/// "" or the name of an implementation that works here. Which ones do must not change the rest of
/// the scenario, hence one draw in any case.
std::string draw_kernels(Random& random) {
  const std::uint64_t draw = random.bits();
  std::vector<std::string> names = {""};
  for (const Kernels& kernels : all_kernels()) {
    if (kernels.supported()) names.emplace_back(kernels.name);
  }
  return names[draw % names.size()];
}

NetworkConfig draw_network(Random& random) {
  NetworkConfig network;
  if (random.chance(0.75)) {
    network.loss = random.pick({0.0, 0.01, 0.05, 0.2}) * random.unit();
    network.duplication = random.pick({0.0, 0.01, 0.2}) * random.unit();
    network.reordering = random.pick({0.0, 0.01, 0.2}) * random.unit();
  }
  network.delay = random.pick({2, 20, 200, 2'000}) * kMicrosecond;
  network.jitter = network.delay * random.between(0, 4) / 2;
  network.reorder_delay = random.pick<Time>({50, 1'000, 20'000}) * kMicrosecond;
  network.multicast = random.chance(0.8);
  return network;
}

std::uint64_t draw_length(Random& random, std::uint64_t values) {
  switch (random.below(8)) {
    case 0: return random.below(3);
    case 1: return random.pick<std::uint64_t>({127, 128, 129, 255, 256, 257});
    case 2: return random.pick<std::uint64_t>({1407, 1408, 1409});
    case 3: return values * static_cast<std::uint64_t>(random.between(1, 8));
    case 4: return values * static_cast<std::uint64_t>(random.between(1, 8)) - 1;
    case 5: return values * static_cast<std::uint64_t>(random.between(1, 8)) + 1;
    case 6: return random.below(6'000);
    default: return random.below(1'000);
  }
}

OperationPlan draw_operation(Random& random, std::uint64_t typical_values) {
  OperationPlan operation;
  operation.length = std::min<std::uint64_t>(draw_length(random, typical_values), 12'000);
  operation.reduction = random.pick({proto::Reduction::kSum, proto::Reduction::kAverage});
  operation.values =
      random.pick({Values::kGradients, Values::kGradients, Values::kSparse, Values::kHuge,
                   Values::kTiny, Values::kSpecials, Values::kAnyBits});
  operation.in_place = random.chance(0.5);
  return operation;
}

WorkerPlan draw_worker(Random& random, const Scenario& scenario, Time start_spread,
                       Time submit_spread) {
  WorkerPlan worker;
  worker.start = random.between(0, start_spread);
  worker.hears_multicast = random.chance(0.95);
  worker.kernels = draw_kernels(random);
  Time time = worker.start;
  for (std::size_t i = 0; i < scenario.operations.size(); ++i) {
    time += random.between(0, submit_spread);
    worker.submit_at.push_back(time);
  }
  if (random.chance(0.1)) {
    worker.pause_from = worker.start + random.between(0, 300 * kMillisecond);
    worker.pause_to = worker.pause_from + 200 * kMillisecond;
  }
  return worker;
}

/// So that nobody is so late as to be left behind, which other stories are about.
void bound_lateness(Scenario& scenario) {
  constexpr Time kLatest = 300 * kMillisecond;
  for (std::size_t i = 0; i < scenario.operations.size(); ++i) {
    Time first = kNever;
    for (const WorkerPlan& worker : scenario.workers) first = std::min(first, worker.submit_at[i]);
    for (WorkerPlan& worker : scenario.workers) {
      worker.submit_at[i] = std::min(worker.submit_at[i], first + kLatest);
    }
  }
}

void draw_sizes(Random& random, Scenario& scenario) {
  const std::size_t mtu = random.pick<std::size_t>({300, 300, 576, 1500, 1500, 1500, 9000});
  const auto window = static_cast<std::uint16_t>(1U << random.below(9));
  const auto in_flight = static_cast<std::size_t>(random.pick({1, 2, 5, 16, 64, 256}));
  for (WorkerPlan& worker : scenario.workers) {
    worker.path_mtu = random.chance(0.9) ? mtu : random.pick<std::size_t>({300, 1500, 9000});
    // IPv4 paths carry 576 bytes; hosts with less know it.
    const bool path_is_narrower = worker.path_mtu >= 576 && random.chance(0.3);
    worker.mtu = path_is_narrower ? 9000 : worker.path_mtu;
    worker.window = window;
    worker.in_flight = in_flight;
    if (random.chance(0.05)) {
      worker.window = static_cast<std::uint16_t>(1U << random.below(9));
      worker.in_flight = static_cast<std::size_t>(random.between(1, 300));
    }
  }
}

}  // namespace

Scenario draw(std::uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.authenticated = seed % kAuthenticated == 0;
  scenario.network = draw_network(random);
  scenario.aggregators = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.shards = static_cast<std::uint16_t>(random.between(1, 2));
  scenario.max_values = random.pick<std::uint16_t>({8832, 8832, 1408, 512});
  scenario.max_window = random.pick<std::uint16_t>({256, 256, 256, 8, 1});
  scenario.multicast = random.chance(0.6);
  scenario.first_sequence = random.pick<std::uint32_t>({0, 0xFFFF'FFFF, 0xFFFF'FFF0, 0x7FFF'FFFD});
  scenario.first_epoch = random.pick<std::uint32_t>({1, 0xFFFF'FFFF, 0xDEAD'BEEF});
  scenario.aggregator_kernels = draw_kernels(random);
  scenario.first_operation = random.pick<std::uint32_t>({0, 0xFFFF'FFFE, 0x7FFF'FFFF});
  scenario.rounding = random.pick({proto::Rounding::kStochastic, proto::Rounding::kNearest});
  scenario.shift =
      static_cast<int>(random.pick({std::int64_t{0}, std::int64_t{0}, random.between(-64, 64)}));
  scenario.one_at_a_time = random.chance(0.3);
  scenario.close_early = random.chance(0.5);
  scenario.workers.resize(random.below(9) + 1);
  draw_sizes(random, scenario);
  // A pinned number of values must fit the narrowest path.
  const bool narrow = std::ranges::any_of(
      scenario.workers, [](const WorkerPlan& worker) { return worker.path_mtu < 1500; });
  if (random.chance(0.2)) scenario.values = narrow || random.chance(0.5) ? 128 : 512;
  const std::uint64_t typical = scenario.values != 0 ? scenario.values
                                : narrow             ? 128
                                         : std::min<std::uint64_t>(scenario.max_values, 1408);
  scenario.operations.resize(static_cast<std::size_t>(random.between(1, 6)));
  for (OperationPlan& operation : scenario.operations) operation = draw_operation(random, typical);
  const Time start_spread = random.pick<Time>({0, 1, 50, 900}) * kMillisecond;
  const Time submit_spread = random.pick<Time>({0, 0, 1, 30, 400}) * kMillisecond;
  for (WorkerPlan& worker : scenario.workers) {
    const WorkerPlan drawn = draw_worker(random, scenario, start_spread, submit_spread);
    worker.start = drawn.start;
    worker.hears_multicast = drawn.hears_multicast;
    worker.kernels = drawn.kernels;
    worker.submit_at = drawn.submit_at;
    worker.pause_from = drawn.pause_from;
    worker.pause_to = drawn.pause_to;
  }
  // With a key, the list of ranks takes the place of some values.
  const bool has_room = !scenario.authenticated || (!narrow && scenario.values == 0);
  if (seed % kStraggling == 0 && has_room) {
    draw_stragglers(random, scenario);
    bound_lateness(scenario);
  }
  draw_lanes(scenario);
  draw_segmentation(scenario);
  return scenario;
}

void draw_lanes(Scenario& scenario) {
  // Without values to wait for, a rank can leave before the lanes of others have started.
  const bool empty = std::ranges::all_of(
      scenario.operations, [](const OperationPlan& operation) { return operation.length == 0; });
  if (empty) return;
  Random random(scenario.seed * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407);
  if (random.chance(0.6)) return;
  for (WorkerPlan& worker : scenario.workers) {
    if (random.chance(0.7)) worker.lanes = static_cast<std::uint16_t>(random.between(2, 4));
  }
}

void draw_segmentation(Scenario& scenario) {
  Random random(scenario.seed * 2'862'933'555'777'941'757 + 3'037'000'493);
  if (random.chance(0.5)) return;
  for (WorkerPlan& worker : scenario.workers) {
    worker.segments = random.chance(0.7);
    worker.path_cuts = random.chance(0.5);
  }
}

void draw_stragglers(Random& random, Scenario& scenario) {
  scenario.straggler_deadline = random.pick<Time>({1, 5, 20, 100}) * kMillisecond;
  const std::size_t world = scenario.workers.size();
  if (random.chance(0.5)) scenario.quorum = static_cast<std::uint16_t>(1 + random.below(world));
  for (OperationPlan& operation : scenario.operations) {
    if (random.chance(0.2)) continue;
    operation.reduction =
        random.chance(0.5) ? proto::Reduction::kPartialSum : proto::Reduction::kPartialAverage;
  }
}

namespace {

/// A value of random sign and mantissa with a uniform exponent in [low, high].
float power(Random& random, int low, int high) {
  const auto exponent = static_cast<int>(random.between(low, high));
  const float magnitude =
      std::ldexp(1.0F + static_cast<float>(random.below(1U << 23)) * 0x1p-23F, exponent);
  return random.chance(0.5) ? -magnitude : magnitude;
}

float draw_value(Random& random, Values values, int shift) {
  switch (values) {
    case Values::kGradients: return power(random, shift - 30, shift - 10);
    case Values::kSparse: return random.chance(0.9) ? 0.0F : power(random, shift - 30, shift - 10);
    case Values::kHuge: return std::abs(power(random, shift + 7, shift + 12));
    case Values::kTiny: return power(random, std::max(shift - 80, -149), shift - 45);
    case Values::kSpecials: {
      constexpr float inf = std::numeric_limits<float>::infinity();
      if (random.chance(0.02)) return std::numeric_limits<float>::quiet_NaN();
      if (random.chance(0.05)) return random.chance(0.5) ? inf : -inf;
      return power(random, shift - 10, shift);
    }
    case Values::kAnyBits: break;
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
}

}  // namespace

std::vector<float> input(const Scenario& scenario, std::size_t index, std::size_t rank) {
  const OperationPlan& operation = scenario.operations[index];
  Random random(scenario.seed * 1'000'003 + index * 1'009 + rank);
  std::vector<float> values(operation.length);
  for (float& value : values) value = draw_value(random, operation.values, scenario.shift);
  return values;
}

namespace {

const char* name_of(Values values) {
  switch (values) {
    case Values::kGradients: return "gradients";
    case Values::kSparse: return "sparse";
    case Values::kHuge: return "huge";
    case Values::kTiny: return "tiny";
    case Values::kSpecials: return "specials";
    case Values::kAnyBits: return "any bits";
  }
  return "?";
}

void print_worker(std::ostream& text, const WorkerPlan& worker) {
  text << " starts " << worker.start / kMillisecond << " ms, submits at";
  for (const Time time : worker.submit_at) text << ' ' << time / kMillisecond;
  text << " ms, mtu " << worker.mtu << '/' << worker.path_mtu << ", window " << worker.window
       << ", in flight " << worker.in_flight;
  if (worker.lanes > 1) text << ", " << worker.lanes << " lanes";
  if (worker.segments) text << ", segments" << (worker.path_cuts ? "" : " that nobody cuts apart");
  if (!worker.hears_multicast) text << ", hears no multicast";
  if (!worker.kernels.empty()) text << ", " << worker.kernels;
  if (worker.pause_from != kNever) {
    text << ", paused from " << worker.pause_from / kMillisecond << " to "
         << worker.pause_to / kMillisecond << " ms";
  }
}

}  // namespace

std::string to_string(const Scenario& scenario) {
  std::ostringstream text;
  const NetworkConfig& network = scenario.network;
  text << scenario.workers.size() << " workers, " << scenario.aggregators << " x "
       << scenario.shards << " shards, loss " << network.loss << ", duplication "
       << network.duplication << ", reordering " << network.reordering << ", corruption "
       << network.corruption << ", delay " << network.delay / kMicrosecond << " us, jitter "
       << network.jitter / kMicrosecond << " us, multicast " << scenario.multicast << '/'
       << network.multicast << ", values " << scenario.values << " of " << scenario.max_values
       << ", max window " << scenario.max_window << ", rounding "
       << static_cast<int>(scenario.rounding) << ", shift " << scenario.shift << ", one at a time "
       << scenario.one_at_a_time << ", close early " << scenario.close_early << ", authenticated "
       << scenario.authenticated << ", straggler deadline "
       << scenario.straggler_deadline / kMillisecond << " ms, quorum " << scenario.quorum
       << ", first sequence " << scenario.first_sequence << ", operation "
       << scenario.first_operation << ", epoch " << scenario.first_epoch;
  if (!scenario.aggregator_kernels.empty()) text << ", " << scenario.aggregator_kernels;
  if (!scenario.pool.empty()) {
    text << ", pool";
    for (const std::size_t aggregator : scenario.pool) text << ' ' << aggregator;
  }
  text << "; " << operations_to_string(scenario);
  for (std::size_t rank = 0; rank < scenario.workers.size(); ++rank) {
    text << "; rank " << rank;
    print_worker(text, scenario.workers[rank]);
  }
  return text.str();
}

std::string operations_to_string(const Scenario& scenario) {
  std::ostringstream text;
  text << "lengths";
  const char* separator = " ";
  for (const OperationPlan& operation : scenario.operations) {
    text << separator << operation.length;
    if (operation.type != proto::DataType::kFloat32) {
      text << " type " << static_cast<int>(operation.type);
    }
    if (operation.reduction != proto::Reduction::kSum) {
      text << " reduction " << static_cast<int>(operation.reduction);
    }
    if (operation.values != Values::kGradients) text << ' ' << name_of(operation.values);
    if (operation.in_place) text << " in place";
    separator = ", ";
  }
  return text.str();
}

std::uint64_t story_seeds() {
  constexpr std::uint64_t kUsual = 10;
  const char* text = std::getenv("NATAGG_SIM_SEEDS");
  if (text == nullptr || *text == '\0') return kUsual;
  const std::uint64_t seeds = std::strtoull(text, nullptr, 10);
  return std::max({std::uint64_t{1}, std::min(seeds / 50, kUsual), seeds / 1'000});
}

}  // namespace natagg::simulation
