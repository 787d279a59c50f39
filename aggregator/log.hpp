// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The log is spdlog's default logger; this sets where it goes.
#pragma once

#include <string>

namespace natagg::aggregator {

/// Logs to standard error, or to `file` when it is not empty. `level` is one of log_level's
/// choices. Throws std::runtime_error that names the file when it cannot be opened.
void start_log(const std::string& level, const std::string& file);

}  // namespace natagg::aggregator
