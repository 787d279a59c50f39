// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Plays a trace into aggregator::Shard objects of this process, one for each that was recorded. The
// shards live in the trace's time, whatever the pace, so that the same trace gives the same run.
#pragma once

#include <cstdint>

#include "tools/trace/pacer.hpp"
#include "tools/trace/replay_report.hpp"

namespace natagg::tools {

/// Plays it `loops` times, each as new jobs. Throws TraceError.
[[nodiscard]] ReplayReport replay_into_shards(const TraceSurvey& survey, const Pace& pace,
                                              std::uint64_t loops);

}  // namespace natagg::tools
