// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/allreduce_run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "tools/reference.hpp"
#include "tools/tensor_data.hpp"

namespace natagg::tools {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t fnv1a(std::uint64_t hash, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x100'0000'01B3;
  }
  return hash;
}

void check(const AllreduceOptions& options, const std::vector<Tensor>& inputs, const Tensor& result,
           std::uint64_t operation) {
  const ReferenceTerms terms{.seed = options.worker.seed,
                             .operation = static_cast<std::uint32_t>(operation),
                             .rounding = static_cast<proto::Rounding>(options.worker.rounding),
                             .shift = options.worker.shift,
                             .reduction = static_cast<proto::Reduction>(options.reduction)};
  const Tensor expected = reference_allreduce(inputs, terms);
  const std::size_t index = first_difference(result, expected);
  if (index == result.size()) return;
  throw std::runtime_error("check failed: operation " + std::to_string(operation) + " value " +
                           std::to_string(index) + " is " + to_string(result, index) + ", and " +
                           to_string(expected, index) + " by definition");
}

/// Adds operation number `operations`, counted from 0, to those before it.
void add(const natagg_partial& one, std::uint64_t operations, natagg_partial& all) {
  const auto before = static_cast<double>(operations);
  all.chunks += one.chunks;
  all.partial_chunks += one.partial_chunks;
  for (std::size_t i = 0; i < std::size(all.missing); ++i) all.missing[i] |= one.missing[i];
  all.least_ranks = operations == 0 ? one.least_ranks : std::min(all.least_ranks, one.least_ranks);
  all.variance_inflation =
      (all.variance_inflation * before + one.variance_inflation) / (before + 1);
}

/// An operation in flight and the memory of its result.
struct Flight {
  Request request;
  Tensor result;
};

/// Operations in flight. When an exception leaves some, they end before their memory does.
class Flights {
 public:
  explicit Flights(Worker& worker) : worker_(worker) {}
  Flights(const Flights&) = delete;
  Flights& operator=(const Flights&) = delete;
  ~Flights() {
    if (flights_.empty()) return;
    worker_.shutdown();
    for (const Flight& flight : flights_) {
      static_cast<void>(natagg_wait(worker_.handle(), flight.request.id(), -1));
    }
  }

  [[nodiscard]] std::size_t size() const { return flights_.size(); }

  /// `memory` is some earlier result's, or empty.
  void start(const AllreduceOptions& options, const Tensor& input, Tensor memory) {
    Flight flight{.request = {}, .result = std::move(memory)};
    if (options.in_place) {
      flight.result = input;
    } else if (flight.result.size() != input.size()) {
      flight.result = Tensor(input.type(), input.size());
    }
    void* out = flight.result.bytes().data();
    const void* in = options.in_place ? out : input.bytes().data();
    flight.request = worker_.allreduce_async(
        in, out, input.size(), static_cast<natagg::DataType>(input.type()), options.reduction);
    flights_.push_back(std::move(flight));
  }

  /// Waits for the oldest and returns its result.
  Tensor finish(Request& request) {
    request = flights_.front().request;
    request.wait();
    Tensor result = std::move(flights_.front().result);
    flights_.pop_front();
    return result;
  }

 private:
  Worker& worker_;
  std::deque<Flight> flights_;
};

}  // namespace

Tensor load_input(const AllreduceOptions& options) {
  if (!options.input.empty()) return read_tensor(options.input, options.type, options.count);
  return generate_tensor(options.type, options.data_seed, options.worker.rank, *options.count);
}

std::vector<Tensor> load_check_inputs(const AllreduceOptions& options, std::size_t count) {
  std::vector<Tensor> inputs;
  for (const std::string& path : options.check_inputs) {
    inputs.push_back(read_tensor(path, options.type, count));
  }
  if (options.check) {
    for (std::uint32_t rank = 0; rank < options.worker.world; ++rank) {
      inputs.push_back(generate_tensor(options.type, options.data_seed, rank, count));
    }
  }
  return inputs;
}

void run_allreduce(Worker& worker, const AllreduceOptions& options, const Tensor& input,
                   const std::vector<Tensor>& check_inputs, AllreduceOutcome& outcome) {
  outcome.checksum = 0xCBF2'9CE4'8422'2325;
  Flights flights(worker);
  std::uint64_t started = 0;
  Clock::duration spent{};
  while (outcome.operations < options.repeat) {
    const Clock::time_point begin = Clock::now();
    while (started < options.repeat && flights.size() < options.in_flight) {
      flights.start(options, input, std::exchange(outcome.result, {}));
      ++started;
    }
    Request request;
    outcome.result = flights.finish(request);
    spent += Clock::now() - begin;
    outcome.seconds = std::chrono::duration<double>(spent).count();

    outcome.checksum = fnv1a(outcome.checksum, outcome.result.bytes());
    bool partial = false;
    if (options.worker.straggler_deadline.count() != 0) {
      const natagg_partial report = request.partial();
      add(report, outcome.operations, outcome.partial);
      partial = report.partial_chunks != 0;
    }
    if (!check_inputs.empty() && !partial) {
      check(options, check_inputs, outcome.result, outcome.operations);
      ++outcome.checked;
    }
    ++outcome.operations;
  }
}

}  // namespace natagg::tools
