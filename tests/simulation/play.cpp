// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/play.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace natagg::simulation {
namespace {

constexpr std::uint32_t kMulticastRange = 0xEFC0'0000;  // 239.192.0.0
constexpr std::uint16_t kMulticastPort = 5000;
// Beyond any sensible retry of LEAVE, and the shards' own time-outs.
constexpr Time kCloseLimit = 10 * kSecond;

const Kernels* kernels_named(const std::string& name) {
  return name.empty() ? nullptr : find_kernels(name);
}

/// The seed's and `number`'s own.
proto::Secret entropy(std::uint64_t seed, std::uint64_t number) {
  Random random(seed * 7'919 + number);
  proto::Secret secret;
  for (std::uint8_t& byte : secret) byte = static_cast<std::uint8_t>(random.bits());
  return secret;
}

/// More than any scenario may take: joining, stragglers, and for every packet of the job a share
/// of the time-outs that loss brings.
Time time_limit(const Scenario& scenario) {
  Time latest = 0;
  Time packets = 0;
  for (const WorkerPlan& worker : scenario.workers) {
    latest = std::max(latest, worker.submit_at.back());
    if (worker.pause_to != kNever) latest = std::max(latest, worker.pause_to);
  }
  for (const OperationPlan& operation : scenario.operations) {
    packets += static_cast<Time>(operation.length / 128 + 1);
  }
  const Time path = scenario.network.delay + scenario.network.jitter;
  const bool faulty = scenario.network.loss + scenario.network.reordering > 0;
  return latest + 2 * kSecond + 8 * packets * path +
         (faulty ? 10 * kSecond + packets * 200 * kMillisecond : 0);
}

/// Nobody is late and the network does no harm: nothing need be sent twice.
bool is_calm(const Scenario& scenario) {
  const NetworkConfig& network = scenario.network;
  const Time start = scenario.workers[0].start;
  // What a rank is not waited for it is late for, though it be by its path alone.
  return scenario.straggler_deadline == 0 &&
         network.loss + network.duplication + network.reordering == 0.0 &&
         std::ranges::all_of(scenario.workers, [start](const WorkerPlan& worker) {
           return worker.start == start && worker.submit_at.back() == start &&
                  worker.pause_from == kNever;
         });
}

/// How many packets may be sent again in a calm network: a round trip can be three times and more
/// the shortest of the latest where each path's delay triples by chance.
std::uint64_t unneeded(const Scenario& scenario, const Outcome& outcome) {
  return scenario.network.jitter > scenario.network.delay ? 1 + outcome.data_packets / 100 : 0;
}

}  // namespace

proto::JobKey job_key(std::uint32_t job) {
  return {job, std::vector(proto::kMinKeyBytes, static_cast<std::byte>(job))};
}

std::string what_it_waits_for(const WorkerHost& host) {
  std::string text = "rank " + std::to_string(host.config().rank);
  if (!host.started()) return text + " has not started";
  for (std::size_t i = 0; i < host.jobs().size(); ++i) {
    const Job& job = host.jobs()[i];
    if (job.status) continue;
    text += std::string(job.submitted == kNever ? " has not submitted" : " waits for") +
            " operation " + std::to_string(i);
    break;
  }
  text += "; stream state " + std::to_string(static_cast<int>(host.stream().state()));
  const std::string& failure = host.stream().failure().message;
  return failure.empty() ? text : text + ": " + failure;
}

worker::StreamConfig stream_config(const Scenario& scenario, std::size_t rank,
                                   const std::vector<proto::Endpoint>& pool) {
  const WorkerPlan& plan = scenario.workers[rank];
  worker::StreamConfig config;
  config.aggregators = pool;
  config.rank = static_cast<std::uint16_t>(rank);
  config.world = static_cast<std::uint16_t>(scenario.workers.size());
  config.seed = scenario.seed;
  config.rounding = scenario.rounding;
  config.shift = scenario.shift;
  config.values = scenario.values;
  config.mtu = plan.mtu;
  config.window = plan.window;
  config.in_flight = plan.in_flight;
  config.lane.count = plan.lanes;
  config.segmentation = plan.segments;
  config.first_operation = scenario.first_operation;
  config.straggler_deadline = scenario.straggler_deadline;
  config.quorum = scenario.quorum;
  config.kernels = kernels_named(plan.kernels);
  if (scenario.authenticated) {
    config.key = std::make_shared<proto::JobKey>(job_key(config.job));
    config.entropy = entropy(scenario.seed, 1 + rank);
  }
  return config;
}

aggregator::ShardConfig shard_config(const Scenario& scenario) {
  aggregator::ShardConfig config;
  config.max_values = scenario.max_values;
  config.max_window = scenario.max_window;
  config.max_jobs = scenario.max_jobs;
  config.max_workers = scenario.max_workers;
  config.multicast_address = scenario.multicast ? kMulticastRange : 0;
  config.multicast_port = scenario.multicast ? kMulticastPort : std::uint16_t{0};
  config.first_epoch = scenario.first_epoch;
  config.first_sequence = scenario.first_sequence;
  config.kernels = kernels_named(scenario.aggregator_kernels);
  if (scenario.authenticated) {
    proto::JobKeys keys;
    for (const std::uint32_t job : {0U, 1U, 2U, 3U, 4U, 5U, 257U}) keys.emplace(job, job_key(job));
    config.keys = std::make_shared<proto::JobKeys>(std::move(keys));
    config.entropy = entropy(scenario.seed, 0);
  }
  return config;
}

void add_aggregators(World& world, const Scenario& scenario) {
  for (int i = 0; i < scenario.aggregators; ++i) {
    world.add_aggregator(shard_config(scenario), scenario.shards);
  }
}

void add_rank(World& world, const Scenario& scenario, std::size_t rank, std::uint32_t job,
              std::uint64_t instances, Time deadline) {
  const WorkerPlan& plan = scenario.workers[rank];
  std::vector<proto::Endpoint> pool;
  for (const std::size_t aggregator : scenario.pool) pool.push_back(world.pool()[aggregator]);
  worker::StreamConfig config =
      stream_config(scenario, rank, scenario.pool.empty() ? world.pool() : pool);
  config.job = job;
  if (config.key) {
    config.key = std::make_shared<proto::JobKey>(job_key(job));
    config.entropy = entropy(scenario.seed, instances * 1'000'003 + rank);
  }
  config.instance = instances * 1'000'003 + rank;
  if (scenario.connect_within != kNever) {
    config.connect_deadline = world.now() + plan.start + scenario.connect_within;
  }
  WorkerHost& host = world.add_worker(config, world.now() + plan.start);
  if (!plan.path_cuts) world.network().leave_whole(host.self().address);
  for (const proto::Endpoint& lane : host.endpoints()) {
    world.network().set_path_mtu(lane, plan.path_mtu);
    if (!plan.hears_multicast) world.network().deafen(lane);
  }
  if (plan.pause_from != kNever) {
    host.add_pause({world.now() + plan.pause_from, world.now() + plan.pause_to});
  }
  for (std::size_t i = 0; i < scenario.operations.size(); ++i) {
    const OperationPlan& operation = scenario.operations[i];
    Job script;
    script.operation.length = operation.length;
    script.operation.type = operation.type;
    script.operation.reduction = operation.reduction;
    script.input = input(scenario, i, rank);
    script.in_place = operation.in_place;
    script.after_previous = scenario.one_at_a_time;
    script.deadline = deadline;
    script.submit_at = world.now() + plan.submit_at[i];
    host.add_job(std::move(script));
  }
  if (scenario.close_early) host.close_when_done();
}

std::size_t add_workers(World& world, const Scenario& scenario, std::uint32_t job,
                        std::uint64_t instances, Time deadline) {
  const std::size_t first = world.workers().size();
  for (std::size_t rank = 0; rank < scenario.workers.size(); ++rank) {
    add_rank(world, scenario, rank, job, instances, deadline);
  }
  return first;
}

Outcome play(const Scenario& scenario, const Recording& recording) {
  World world(scenario.network, scenario.seed, recording.lines);
  Recorder recorder(world, recording);
  const Time begin = world.now();
  add_aggregators(world, scenario);
  const std::size_t first = add_workers(world, scenario);
  std::optional<Answers> answers;
  if (scenario.straggler_deadline != 0) answers.emplace(world, scenario.workers.size());

  Outcome outcome;
  world.run_until([&] { return world.workers_done(); }, begin + time_limit(scenario));
  outcome.duration = world.now() - begin;
  if (world.workers_done()) {
    outcome.violations =
        check_results(world, scenario, first, false, answers ? &*answers : nullptr);
  } else {
    for (const WorkerHost& host : world.workers()) {
      if (!host.done()) outcome.violations.push_back(what_it_waits_for(host));
    }
  }
  for (const Job& job : world.worker(first).jobs()) outcome.results.push_back(job.output);

  for (WorkerHost& host : world.workers()) host.close_when_done();
  const auto all_over = [&] { return world.workers_closed() && world.aggregators_idle(); };
  if (!world.run_until(all_over, world.now() + kCloseLimit)) {
    outcome.violations.push_back(world.workers_closed() ? "an aggregator does not become idle"
                                                        : "a worker does not close");
  }
  for (const std::string& violation : world.violations()) outcome.violations.push_back(violation);
  for (const WorkerHost& host : world.workers()) {
    if (!host.started()) continue;
    outcome.data_packets += host.count(&worker::StreamStats::data_packets);
    outcome.retransmissions += host.count(&worker::StreamStats::retransmissions);
    outcome.duplicate_results += host.count(&worker::StreamStats::duplicate_results);
  }
  if (is_calm(scenario) && outcome.retransmissions > unneeded(scenario, outcome)) {
    outcome.violations.push_back(std::to_string(outcome.retransmissions) + " of " +
                                 std::to_string(outcome.data_packets) +
                                 " packets sent again without need");
  }
  outcome.multicast = world.network().stats().multicast;
  if (answers) {
    outcome.partial_chunks = answers->partial_chunks();
    if (answers->contradictory()) outcome.violations.emplace_back("a chunk has several answers");
  }
  recorder.close();
  return outcome;
}

}  // namespace natagg::simulation
