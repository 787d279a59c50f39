// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/shrink.hpp"

#include <algorithm>
#include <utility>

namespace natagg::simulation {
namespace {

using Steps = Simplifications<Scenario>;

// A length is tried without its half, its quarter and so on, until this part of it is nothing.
constexpr std::uint64_t kFinest = 1U << 12;

/// Without those in [begin, end), of which there may be fewer, but with one left.
template <typename T>
void erase(std::vector<T>& from, std::size_t begin, std::size_t end) {
  end = std::min(end, from.size());
  if (begin >= end || end - begin == from.size()) return;
  from.erase(from.begin() + static_cast<std::ptrdiff_t>(begin),
             from.begin() + static_cast<std::ptrdiff_t>(end));
}

Simplification<Scenario> without_operations(std::size_t begin, std::size_t end) {
  return [begin, end](Scenario& scenario) {
    erase(scenario.operations, begin, end);
    for (WorkerPlan& worker : scenario.workers) erase(worker.submit_at, begin, end);
  };
}

Simplification<Scenario> without_ranks(std::size_t begin, std::size_t end) {
  return [begin, end](Scenario& scenario) {
    erase(scenario.workers, begin, end);
    const auto ranks = static_cast<std::uint16_t>(scenario.workers.size());
    scenario.quorum = std::min(scenario.quorum, ranks);
  };
}

/// First without one half or the other of `count`, then without each.
void append_fewer(Steps& steps, std::size_t count,
                  Simplification<Scenario> (*without)(std::size_t, std::size_t)) {
  if (count > 2) {
    steps.push_back(without((count + 1) / 2, count));
    steps.push_back(without(0, count / 2));
  }
  for (std::size_t i = count; i > 0; --i) steps.push_back(without(i - 1, i));
}

/// Settings become those of a scenario of which nothing is said.
template <typename... Members>
Simplification<Scenario> plain(Members... members) {
  return [members...](Scenario& scenario) {
    const Scenario simplest;
    ((scenario.*members = simplest.*members), ...);
  };
}

template <typename... Members>
Simplification<Scenario> plain_network(Members... members) {
  return [members...](Scenario& scenario) {
    const NetworkConfig simplest;
    ((scenario.network.*members = simplest.*members), ...);
  };
}

Simplification<Scenario> one_fewer(std::uint16_t Scenario::*count) {
  return [count](Scenario& scenario) {
    if (scenario.*count > 1) --(scenario.*count);
  };
}

void append_settings(Steps& steps) {
  using Network = NetworkConfig;
  steps.push_back(plain(&Scenario::network));
  steps.push_back(plain_network(&Network::loss));
  steps.push_back(plain_network(&Network::duplication));
  steps.push_back(plain_network(&Network::reordering, &Network::reorder_delay));
  steps.push_back(plain_network(&Network::reorder_delay));
  steps.push_back(plain_network(&Network::corruption));
  steps.push_back(plain_network(&Network::delay, &Network::jitter));
  steps.push_back(plain_network(&Network::jitter));
  steps.push_back(plain_network(&Network::multicast));
  steps.push_back(plain(&Scenario::aggregators));
  steps.push_back(one_fewer(&Scenario::aggregators));
  steps.push_back(plain(&Scenario::shards));
  steps.push_back(one_fewer(&Scenario::shards));
  steps.push_back(plain(&Scenario::multicast));
  steps.push_back(plain(&Scenario::authenticated));
  steps.push_back(plain(&Scenario::straggler_deadline, &Scenario::quorum));
  steps.push_back(plain(&Scenario::quorum));
  steps.push_back(
      plain(&Scenario::first_sequence, &Scenario::first_epoch, &Scenario::first_operation));
  steps.push_back(plain(&Scenario::first_sequence));
  steps.push_back(plain(&Scenario::first_epoch));
  steps.push_back(plain(&Scenario::first_operation));
  steps.push_back(plain(&Scenario::values));
  steps.push_back(plain(&Scenario::max_values));
  steps.push_back(plain(&Scenario::max_window));
  steps.push_back(plain(&Scenario::aggregator_kernels));
  steps.push_back(plain(&Scenario::rounding));
  steps.push_back(plain(&Scenario::shift));
  steps.push_back(plain(&Scenario::one_at_a_time));
  steps.push_back(plain(&Scenario::close_early));
}

/// First of all ranks (or operations) at once, then of each.
template <typename Plan>
void append_of_each(Steps& steps, std::vector<Plan> Scenario::*plans, std::size_t count,
                    const Simplification<Plan>& simplify) {
  steps.push_back(
      [plans, simplify](Scenario& scenario) { std::ranges::for_each(scenario.*plans, simplify); });
  for (std::size_t i = 0; count > 1 && i < count; ++i) {
    steps.push_back([plans, simplify, i](Scenario& scenario) {
      if (i < (scenario.*plans).size()) simplify((scenario.*plans)[i]);
    });
  }
}

template <typename Plan, typename... Members>
void append_plain(Steps& steps, std::vector<Plan> Scenario::*plans, std::size_t count,
                  Members... members) {
  append_of_each<Plan>(steps, plans, count, [members...](Plan& plan) {
    const Plan simplest;
    ((plan.*members = simplest.*members), ...);
  });
}

/// Nobody comes later after the first than before, since one who does may be left behind.
void append_times(Steps& steps, std::size_t ranks) {
  steps.emplace_back([](Scenario& scenario) {
    for (WorkerPlan& worker : scenario.workers) {
      worker.start = 0;
      std::ranges::fill(worker.submit_at, 0);
    }
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    steps.emplace_back([rank](Scenario& scenario) {
      if (rank >= scenario.workers.size()) return;
      WorkerPlan& self = scenario.workers[rank];
      for (const WorkerPlan& other : scenario.workers) {
        self.start = std::min(self.start, other.start);
        std::ranges::transform(self.submit_at, other.submit_at, self.submit_at.begin(),
                               [](Time mine, Time theirs) { return std::min(mine, theirs); });
      }
    });
  }
  steps.emplace_back([](Scenario& scenario) {
    for (WorkerPlan& worker : scenario.workers) {
      worker.start /= 2;
      for (Time& time : worker.submit_at) time /= 2;
    }
  });
}

void append_lengths(Steps& steps, std::size_t operations) {
  const auto append = [&](const std::function<std::uint64_t(std::uint64_t)>& shorter) {
    append_of_each<OperationPlan>(
        steps, &Scenario::operations, operations,
        [shorter](OperationPlan& operation) { operation.length = shorter(operation.length); });
  };
  append([](std::uint64_t) { return std::uint64_t{0}; });
  append([](std::uint64_t length) { return std::min<std::uint64_t>(length, 1); });
  for (std::uint64_t part = 2; part <= kFinest; part *= 2) {
    append([part](std::uint64_t length) { return length - length / part; });
  }
  append([](std::uint64_t length) { return length - std::min<std::uint64_t>(length, 1); });
}

}  // namespace

Simplifications<Scenario> simplifications(const Scenario& scenario) {
  Steps steps;
  const std::size_t ranks = scenario.workers.size();
  const std::size_t operations = scenario.operations.size();
  append_fewer(steps, operations, without_operations);
  append_fewer(steps, ranks, without_ranks);
  append_settings(steps);
  const auto workers = &Scenario::workers;
  append_plain(steps, workers, ranks, &WorkerPlan::pause_from, &WorkerPlan::pause_to);
  append_times(steps, ranks);
  append_plain(steps, workers, ranks, &WorkerPlan::mtu, &WorkerPlan::path_mtu);
  append_plain(steps, workers, ranks, &WorkerPlan::window, &WorkerPlan::in_flight);
  append_plain(steps, workers, ranks, &WorkerPlan::lanes);
  append_plain(steps, workers, ranks, &WorkerPlan::segments);
  append_plain(steps, workers, ranks, &WorkerPlan::path_cuts);
  append_plain(steps, workers, ranks, &WorkerPlan::hears_multicast);
  append_plain(steps, workers, ranks, &WorkerPlan::kernels);
  const auto plans = &Scenario::operations;
  append_plain(steps, plans, operations, &OperationPlan::reduction);
  append_plain(steps, plans, operations, &OperationPlan::values);
  append_plain(steps, plans, operations, &OperationPlan::in_place);
  append_lengths(steps, operations);
  return steps;
}

}  // namespace natagg::simulation
