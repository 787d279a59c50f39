// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Makes a trace: jobs of n ranks reduce tensors through the shipped worker and aggregator state
// machines on a virtual network, recorded at the aggregator's port of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proto/operation.hpp"
#include "proto/rounding.hpp"
#include "tools/tensor.hpp"
#include "tools/trace/virtual_network.hpp"

namespace natagg::tools {

struct TraceJobOptions {
  std::vector<Tensor> inputs;  // of every operation, by rank; all alike in length
  std::size_t operations = 1;
  std::uint16_t jobs = 1;  // that do the same at the same time
  std::uint16_t shards = 1;
  std::uint16_t values = 0;  // a packet; 0: the most that the path carries
  std::uint16_t window = 256;
  std::size_t mtu = 1500;
  std::uint64_t seed = 1;  // of the jobs' randomness
  proto::Rounding rounding = proto::Rounding::kStochastic;
  proto::Reduction reduction = proto::Reduction::kSum;
  int shift = 0;
  std::uint32_t first_sequence = 0xFFFF'FF00;
  std::uint32_t first_epoch = 1;
  VirtualNetworkOptions network;

  /// Sees the results of job 0, if set: those of a rank in the order in which they complete.
  std::function<void(std::size_t operation, std::uint16_t rank, const Tensor& result)> on_result;
};

struct GeneratedTrace {
  std::uint64_t packets = 0;
  std::uint64_t retransmissions = 0;
  double seconds = 0;  // of virtual time
};

/// Writes the trace to `path`. Takes memory for the results of two operations, however many there
/// are. Throws std::invalid_argument for options out of range, and
/// std::runtime_error when an operation fails or the file cannot be written.
GeneratedTrace generate_trace(const TraceJobOptions& options, const std::string& path);

}  // namespace natagg::tools
