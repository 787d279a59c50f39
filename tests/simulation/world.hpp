// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Worker and aggregator hosts on one network under one virtual clock. Time jumps from event to
// event, so an hour of waiting costs nothing and a run does not depend on the machine.
#pragma once

#include <deque>
#include <functional>
#include <ostream>
#include <queue>
#include <string>
#include <vector>

#include "simulation/aggregator_host.hpp"
#include "simulation/invariants.hpp"
#include "simulation/network.hpp"
#include "simulation/worker_host.hpp"

namespace natagg::simulation {

class World {
 public:
  explicit World(const NetworkConfig& config = {}, std::uint64_t seed = 1,
                 std::ostream* trace = nullptr);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Aggregators live at 10.0.0.1 and up, on the default port and the next ones.
  AggregatorHost& add_aggregator(const aggregator::ShardConfig& config, std::uint16_t shards);
  /// The first shard of every aggregator so far: StreamConfig::aggregators.
  [[nodiscard]] std::vector<proto::Endpoint> pool() const;

  /// Workers live at 10.0.1.1 and up, on ports of their own.
  WorkerHost& add_worker(worker::StreamConfig config, Time start);
  WorkerHost& add_worker(worker::StreamConfig config, const proto::Endpoint& self, Time start);

  /// Does `action` at `time`.
  void at(Time time, std::function<void()> action);

  /// Lets time pass until `done`, which is asked after every event, or until `limit`. Returns
  /// whether it was done.
  bool run_until(const std::function<bool()>& done, Time limit);
  void run_for(Time duration);

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] AggregatorHost& aggregator(std::size_t i) { return aggregators_[i]; }
  [[nodiscard]] std::deque<AggregatorHost>& aggregators() { return aggregators_; }
  [[nodiscard]] WorkerHost& worker(std::size_t i) { return workers_[i]; }
  [[nodiscard]] std::deque<WorkerHost>& workers() { return workers_; }

  /// Every living worker's script has ended.
  [[nodiscard]] bool workers_done() const;
  /// Every living worker's stream is closed.
  [[nodiscard]] bool workers_closed() const;
  [[nodiscard]] bool aggregators_idle() const;
  /// What hosts and network saw that must never happen.
  [[nodiscard]] std::vector<std::string> violations() const;

 private:
  struct Action {
    Time time;
    std::uint64_t order;
    std::function<void()> act;
    bool operator>(const Action& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  [[nodiscard]] bool runs_its_job(const proto::Endpoint& worker) const;
  [[nodiscard]] Time next_event() const;
  void handle_events();
  void deliver(Packet packet);

  Time now_ = kSecond;
  Network network_;
  Invariants invariants_{[this](const proto::Endpoint& worker) { return runs_its_job(worker); }};
  std::deque<AggregatorHost> aggregators_;  // deques, so that references stay valid
  std::deque<WorkerHost> workers_;
  std::priority_queue<Action, std::vector<Action>, std::greater<>> actions_;
  std::uint64_t actions_added_ = 0;
};

}  // namespace natagg::simulation
