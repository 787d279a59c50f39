// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The command line of natagg-allreduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "natagg/worker.hpp"
#include "tools/tensor.hpp"

namespace natagg::tools {

struct AllreduceOptions {
  natagg::Options worker;
  natagg::Reduction reduction = natagg::Reduction::kSum;
  bool average = false;  // what the reduction is, partial or not
  DataType type = DataType::kFloat32;
  std::string input;                 // a file, or generated when empty
  std::optional<std::size_t> count;  // values; without it, the whole file
  std::uint64_t data_seed = 1;
  std::string output;
  bool in_place = false;
  std::uint64_t repeat = 1;
  std::uint64_t in_flight = 1;
  bool check = false;                     // against all ranks' generated values
  std::vector<std::string> check_inputs;  // or against these files, one a rank
  bool json = false;
};

/// The options; or nothing after printing help or version as asked. Throws
/// boost::program_options::error with a text for the user.
[[nodiscard]] std::optional<AllreduceOptions> parse_allreduce_options(int argc,
                                                                      const char* const* argv);

}  // namespace natagg::tools
