// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Where the options come from: command line before environment before file before defaults.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/options.hpp"

namespace natagg::aggregator {

/// What the command line asks for besides running.
enum class Request { kRun, kHelp, kVersion, kCheckConfig, kPrintConfig };

struct Configuration {
  Request request = Request::kRun;
  Options options;
  std::map<std::string, std::string, std::less<>> sources;  // of the keys that were set
};

struct CommandLine {
  std::vector<std::string> eal;   // before --
  std::vector<std::string> ours;  // after --, or all when there is none
};

/// Splits the arguments behind the program's name, by DPDK's convention.
[[nodiscard]] CommandLine split_command_line(const std::vector<std::string>& arguments);

/// Reads all sources and checks the result. `environment` holds "NAME=value" texts. Throws
/// std::invalid_argument that names source, key, value and range. With --help or --version
/// nothing else is read; --print-config also prints what would not do.
[[nodiscard]] Configuration load_configuration(const std::vector<std::string>& arguments,
                                               const std::vector<std::string>& environment);

[[nodiscard]] std::string help_text();

/// "NATAGG_MEMBER_TIMEOUT_MS" of "member_timeout_ms".
[[nodiscard]] std::string environment_name(std::string_view key);

/// Splits eal_args at blanks; quotes of either kind keep blanks together.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text);

}  // namespace natagg::aggregator
