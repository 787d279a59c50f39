// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "keys/key_file.hpp"
#include "worker_lib/error.hpp"

namespace natagg::worker {
namespace {

std::uint64_t random_instance() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

Worker::Worker(const WorkerConfig& config)
    : process_(::getpid()),
      operation_timeout_(config.operation_timeout),
      takes_partial_(config.stream.straggler_deadline != 0),
      requests_(takes_partial_) {
  try {
    connect(config);
  } catch (...) {
    stop();
    throw;
  }
}

Worker::~Worker() {
  stop();
}

/// One lane after the other, as StreamConfig::lane wants it.
void Worker::connect(const WorkerConfig& config) {
  StreamConfig stream = config.stream;
  stream.instance = random_instance();
  stream.connect_deadline = Lane::now() + config.connect_timeout;
  std::size_t lanes = stream.lane.count = config.io_threads;
  if (!config.record.empty()) recording_.emplace(config.record, lanes);
  lanes_.reserve(lanes);  // no lane that has started may get lost for want of memory
  for (std::uint16_t index = 0; index < lanes; ++index) {
    stream.lane.index = index;
    if (stream.key) stream.entropy = keys::random_secret();
    lanes_.push_back(
        std::make_unique<Lane>(config, stream, requests_, recording_ ? &*recording_ : nullptr));
    requests_.await_ready(index);
    const StreamStats agreed = requests_.stats().stream;
    stream.values = agreed.values;
    stream.lane.members = agreed.members;
    lanes = std::min<std::size_t>(lanes, agreed.shards);
  }
  requests_.open();
}

void Worker::stop() {
  requests_.shutdown();
  for (const auto& lane : lanes_) lane->join();
  requests_.await_no_calls();
}

Request Worker::submit(const proto::Operation& operation, const void* in, void* out) {
  if (proto::may_be_partial(operation.reduction) && !takes_partial_) {
    throw Error(NATAGG_INVALID_ARGUMENT,
                "allreduce: a partial reduction needs the option straggler_deadline_ms");
  }
  return requests_.submit(
      {.operation = operation, .in = in, .out = out, .deadline = Lane::now() + operation_timeout_});
}

}  // namespace natagg::worker
