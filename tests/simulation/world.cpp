// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/world.hpp"

#include <algorithm>
#include <utility>

namespace natagg::simulation {
namespace {

constexpr std::uint32_t kAggregatorNet = 0x0A00'0000;  // 10.0.0.0
constexpr std::uint32_t kWorkerNet = 0x0A00'0100;      // 10.0.1.0
constexpr std::uint16_t kFirstWorkerPort = 40'000;

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

World::World(const NetworkConfig& config, std::uint64_t seed, std::ostream* trace)
    : network_(config, seed, trace) {}

AggregatorHost& World::add_aggregator(const aggregator::ShardConfig& config, std::uint16_t shards) {
  const auto number = static_cast<std::uint32_t>(aggregators_.size() + 1);
  invariants_.expect_places(shards);
  return aggregators_.emplace_back(config, shards,
                                   proto::Endpoint{kAggregatorNet + number, proto::kDefaultPort},
                                   now_, invariants_);
}

std::vector<proto::Endpoint> World::pool() const {
  std::vector<proto::Endpoint> pool;
  for (const AggregatorHost& host : aggregators_) pool.push_back(host.first());
  return pool;
}

WorkerHost& World::add_worker(worker::StreamConfig config, Time start) {
  const auto number = static_cast<std::uint32_t>(workers_.size() + 1);
  const proto::Endpoint self{kWorkerNet + number,
                             static_cast<std::uint16_t>(kFirstWorkerPort + number)};
  return add_worker(std::move(config), self, start);
}

WorkerHost& World::add_worker(worker::StreamConfig config, const proto::Endpoint& self,
                              Time start) {
  invariants_.expect_worker(config.job, config.world, config.window,
                            config.straggler_deadline != 0);
  return workers_.emplace_back(std::move(config), self, start, invariants_);
}

void World::at(Time time, std::function<void()> action) {
  actions_.push({time, actions_added_++, std::move(action)});
}

Time World::next_event() const {
  Time next = network_.next_arrival();
  for (const WorkerHost& host : workers_) next = std::min(next, host.next_event(now_));
  for (const AggregatorHost& host : aggregators_) next = std::min(next, host.next_tick());
  if (!actions_.empty()) next = std::min(next, actions_.top().time);
  return next;
}

bool World::run_until(const std::function<bool()>& done, Time limit) {
  while (!done()) {
    const Time next = next_event();
    if (next > limit) {
      now_ = limit;
      return false;
    }
    now_ = std::max(now_, next);
    handle_events();
  }
  return true;
}

void World::run_for(Time duration) {
  run_until([] { return false; }, now_ + duration);
}

void World::handle_events() {
  while (!actions_.empty() && actions_.top().time <= now_) {
    const std::function<void()> act = actions_.top().act;
    actions_.pop();
    act();
  }
  while (network_.next_arrival() <= now_) {
    if (std::optional<Packet> packet = network_.take()) deliver(std::move(*packet));
  }
  for (AggregatorHost& host : aggregators_) {
    if (host.next_tick() <= now_) host.tick(now_, network_);
  }
  for (WorkerHost& host : workers_) {
    if (host.next_event(now_) <= now_) host.run(now_, network_);
  }
}

void World::deliver(Packet packet) {
  for (AggregatorHost& host : aggregators_) {
    if (host.owns(packet.to)) return host.deliver(packet, now_, network_);
  }
  // A later worker may have been given an earlier one's address; both hear, as both would if the
  // first were still running.
  for (WorkerHost& host : workers_) {
    if (host.owns(packet.to)) host.deliver(packet, now_);
  }
}

bool World::runs_its_job(const proto::Endpoint& worker) const {
  return std::ranges::any_of(
      workers_, [&](const WorkerHost& host) { return host.alive() && host.ready(worker); });
}

bool World::workers_done() const {
  return std::ranges::all_of(workers_,
                             [](const WorkerHost& host) { return !host.alive() || host.done(); });
}

bool World::workers_closed() const {
  return std::ranges::all_of(workers_,
                             [](const WorkerHost& host) { return !host.alive() || host.closed(); });
}

bool World::aggregators_idle() const {
  return std::ranges::all_of(aggregators_, &AggregatorHost::idle);
}

std::vector<std::string> World::violations() const {
  std::vector<std::string> all = network_.violations();
  append(all, invariants_.violations());
  for (const WorkerHost& host : workers_) append(all, host.violations());
  for (const AggregatorHost& host : aggregators_) append(all, host.violations());
  return all;
}

}  // namespace natagg::simulation
