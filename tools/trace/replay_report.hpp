// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What came of a replay, as text and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/trace/duration_histogram.hpp"
#include "tools/trace/replay_ledger.hpp"

namespace natagg::tools {

struct ReplayReport {
  std::string target;
  std::uint64_t loops = 0;
  std::uint64_t packets = 0;       // sent to the aggregator
  std::uint64_t data_packets = 0;  // of these, DATA
  std::uint64_t values = 0;        // in them
  std::uint64_t bytes = 0;         // IP packets, sent
  std::uint64_t held = 0;          // that stood too early in the trace
  std::uint64_t retransmissions = 0;
  double seconds = 0;       // in all, without the forming of sessions
  double busy_seconds = 0;  // inside the shards; 0 where that is not known
  std::uint64_t ticks = 0;  // the same in ticks()
  double ticks_per_second = 0;
  DurationHistogram latency;  // in ticks()
  std::string_view latency_meaning;
  std::vector<std::pair<std::string_view, std::uint64_t>> counters;  // of the shards, not 0
  Answers answers;
  Findings findings;

  /// Adds what one playing says of answers.
  void add(const ReplayLedger& ledger);

  /// Every expected answer came, and all were right, as were the recorded ones.
  [[nodiscard]] bool good(const TraceSurvey& survey) const;
};

[[nodiscard]] std::string to_text(const TraceSurvey& survey, const ReplayReport& report);
[[nodiscard]] std::string to_json(const TraceSurvey& survey, const ReplayReport& report);

}  // namespace natagg::tools
