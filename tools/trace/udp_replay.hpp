// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Plays a trace into a running aggregator: over UDP sockets, one for each rank and session, as the
// workers had, or over another transport of theirs. Sends again what is lost on the way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "proto/endpoint.hpp"
#include "tools/trace/pacer.hpp"
#include "tools/trace/rank_network.hpp"
#include "tools/trace/replay_report.hpp"

namespace natagg::tools {

struct UdpTarget {
  proto::Endpoint aggregator;   // its first shard
  std::uint32_t first_job = 0;  // the live jobs are this one and the next, one a session
  std::size_t in_flight = 32;   // chunks that are sent in full and not answered
  NetworkOptions network = {};
};

/// Plays it `loops` times. Throws TraceError where the aggregator cannot take the trace, and as
/// make_network() does.
[[nodiscard]] ReplayReport replay_over_udp(const TraceSurvey& survey, const UdpTarget& target,
                                           const Pace& pace, std::uint64_t loops);

}  // namespace natagg::tools
