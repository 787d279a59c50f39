// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What natagg-allreduce says at its end: a line for people, and a JSON object for programs.
#pragma once

#include <cstddef>
#include <string>

#include "natagg/natagg.h"
#include "tools/allreduce_options.hpp"
#include "tools/allreduce_run.hpp"

namespace natagg::tools {

struct AllreduceSummary {
  natagg_status status = NATAGG_OK;
  std::string error;  // empty when all went well
  int rank_at_fault = -1;
  std::size_t count = 0;  // values an operation
  double connect_seconds = 0;
  AllreduceOutcome outcome;
  natagg_statistics statistics{};
};

/// "rank 0 of 4: 3 sums of 215370 float32 in 0.021 s, ...".
[[nodiscard]] std::string to_text(const AllreduceOptions& options, const AllreduceSummary& summary);

/// One line. The statistics are natagg_statistics, under the same names.
[[nodiscard]] std::string to_json(const AllreduceOptions& options, const AllreduceSummary& summary);

}  // namespace natagg::tools
