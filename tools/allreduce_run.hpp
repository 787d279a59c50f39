// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Runs the operations that natagg-allreduce was asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "natagg/worker.hpp"
#include "tools/allreduce_options.hpp"
#include "tools/tensor.hpp"

namespace natagg::tools {

/// Throws std::runtime_error when a file cannot be read.
[[nodiscard]] Tensor load_input(const AllreduceOptions& options);

/// All ranks' values, for checking; empty when no check is asked for.
[[nodiscard]] std::vector<Tensor> load_check_inputs(const AllreduceOptions& options,
                                                    std::size_t count);

struct AllreduceOutcome {
  Tensor result;                 // of the last operation
  std::uint64_t operations = 0;  // done
  std::uint64_t checked = 0;     // and found right bit by bit
  double seconds = 0;            // from the first submission to the last result, without checks
  std::uint64_t checksum = 0;    // FNV-1a of all results' bytes: equal on all ranks
  natagg_partial partial{};      // of all operations, where some ranks may be late
};

/// Fills `outcome` as it goes. Throws natagg::Error, or std::runtime_error that names the first
/// value that is not what `check_inputs` say.
void run_allreduce(Worker& worker, const AllreduceOptions& options, const Tensor& input,
                   const std::vector<Tensor>& check_inputs, AllreduceOutcome& outcome);

}  // namespace natagg::tools
