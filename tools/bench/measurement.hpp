// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The measuring loop, the same for all libraries.
//
// Operations run in rows, without anything between them; before a row the ranks fill their tensors
// and meet. The first operation of a row is a lead-in, which takes in that the ranks do not set
// out at the same instant. The time of another one is from the last rank's completion of the
// one before to the last rank's completion of this one, which natagg-bench makes of the
// completions that the ranks report.
#pragma once

#include <string>

#include "tools/bench/rank_options.hpp"
#include "tools/bench/reducer.hpp"

namespace natagg::bench {

/// Checks an operation's values, measures, and returns the report: one line of JSON. Throws
/// std::exception with the reason.
[[nodiscard]] std::string measure(Reducer& reducer, const RankOptions& options);

}  // namespace natagg::bench
