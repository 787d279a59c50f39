// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The part of the command line that the rank programs of all libraries have.
#pragma once

#include <sys/types.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace natagg::bench {

struct RankOptions {
  std::size_t count = 0;    // values a tensor
  std::size_t tensors = 1;  // handed over together: one operation
  double seconds = 1;       // to measure for, about
  std::uint64_t least = 3;  // operations to count, whatever time they take
  std::uint64_t most = 10'000;
  std::string directory;            // where the ranks meet and report
  std::string interface = "eth0";   // whose bytes are counted
  std::vector<pid_t> watch;         // processes whose CPU time rank 0 reports
  std::chrono::seconds limit{120};  // for the others to come to a meeting
};

/// Options of `RankOptions` and `own`, which the caller has made; or nothing after printing help.
/// Throws boost::program_options::error with a text for the user.
[[nodiscard]] std::optional<RankOptions> parse_rank_options(
    int argc, const char* const* argv, const boost::program_options::options_description& own);

}  // namespace natagg::bench
