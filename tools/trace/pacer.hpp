// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// When each packet of a replay is due: at its recorded time, at a given rate, or at once.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/trace/ticks.hpp"

namespace natagg::tools {

struct Pace {
  bool recorded = false;  // as it was recorded
  double rate = 0;        // packets a second; 0: flat out
};

class Pacer {
 public:
  /// `first_time` is the trace's first packet's.
  Pacer(const Pace& pace, std::int64_t first_time)
      : pace_(pace), first_time_(first_time), start_(monotonic_ns()) {}

  /// When the next packet, recorded at `time`, is due, by monotonic_ns(); nothing: at once.
  [[nodiscard]] std::optional<std::int64_t> next(std::int64_t time) {
    if (pace_.recorded) return start_ + (time - first_time_);
    if (pace_.rate <= 0) return std::nullopt;
    return start_ + static_cast<std::int64_t>(static_cast<double>(sent_++) * 1e9 / pace_.rate);
  }

  /// What was not the trace's own time: the forming of a session.
  void postpone(std::int64_t nanoseconds) { start_ += nanoseconds; }

 private:
  Pace pace_;
  std::int64_t first_time_;
  std::int64_t start_;
  std::uint64_t sent_ = 0;
};

}  // namespace natagg::tools
