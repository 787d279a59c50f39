// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The table that natagg-statistics prints, and whether all of it is as it must be.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/splitmix.hpp"

namespace natagg::statistics {

inline constexpr double kMostStandardErrors = 5;

/// The largest of several deviations, in standard errors, and what had it.
struct Worst {
  double deviation = 0;
  int place = 0;

  void add(double standard_errors, int at) {
    if (std::fabs(standard_errors) < std::fabs(deviation)) return;
    deviation = standard_errors;
    place = at;
  }
};

/// A mean that must be 0, of errors whose variances are known.
struct Mean {
  double sum = 0;
  double variance = 0;  // of `sum`

  [[nodiscard]] double standard_errors() const {
    return variance > 0 ? sum / std::sqrt(variance) : 0;
  }
};

class Report {
 public:
  Report();

  /// At most kMostStandardErrors; `where` names what `worst.place` counts.
  void deviation(std::string_view what, std::uint64_t values, const Worst& worst,
                 std::string_view where);
  void within(std::string_view what, std::uint64_t values, double measured, double expected,
              double tolerance);
  /// Things that must never happen.
  void none(std::string_view what, std::uint64_t values, std::uint64_t happened);

  [[nodiscard]] bool passed() const { return passed_; }
  [[nodiscard]] std::uint64_t values() const { return values_; }

 private:
  void row(std::string_view what, std::uint64_t values, const std::string& measured,
           const std::string& allowed, bool passed);

  bool passed_ = true;
  std::uint64_t values_ = 0;
};

/// The inputs' own randomness, unrelated to Philox.
using Random = proto::SplitMix64;

// Each section uses about `values` values.
void encoding(std::uint64_t values, Report& report);
void variance(std::uint64_t values, Report& report);
void recompression(std::uint64_t values, Report& report);
void whole_path(std::uint64_t values, Report& report);
void generator(std::uint64_t values, Report& report);

}  // namespace natagg::statistics
