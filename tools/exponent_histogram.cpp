// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/exponent_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>

namespace natagg::tools {
namespace {

constexpr int kExponentsALine = 4;
constexpr double kLongestBar = 40;

void add_line(std::ostream& text, const std::string& label, std::uint64_t count,
              std::uint64_t total) {
  const double share = static_cast<double>(count) / static_cast<double>(total);
  text << std::setw(16) << label << ' ' << std::setw(6) << std::fixed << std::setprecision(2)
       << 100 * share << " %  "
       << std::string(static_cast<std::size_t>(std::ceil(share * kLongestBar)), '#') << '\n';
}

}  // namespace

void ExponentHistogram::add(std::span<const float> values) {
  for (const float value : values) {
    if (value == 0) {
      ++zeros_;
    } else if (!std::isfinite(value)) {
      ++specials_;
    } else {
      ++counts_[static_cast<std::size_t>(std::ilogb(value) - kLowest)];
    }
  }
}

std::uint64_t ExponentHistogram::at(int exponent) const {
  return exponent < kLowest || exponent > kHighest
             ? 0
             : counts_[static_cast<std::size_t>(exponent - kLowest)];
}

std::string ExponentHistogram::to_text() const {
  const std::uint64_t total = std::accumulate(counts_.begin(), counts_.end(), zeros_ + specials_);
  std::ostringstream text;
  if (total == 0) return "";
  if (zeros_ > 0) add_line(text, "zero", zeros_, total);
  for (int first = -152; first <= kHighest; first += kExponentsALine) {
    std::uint64_t count = 0;
    for (int i = 0; i < kExponentsALine; ++i) count += at(first + i);
    if (count == 0) continue;
    add_line(text, "2^" + std::to_string(first) + " to 2^" + std::to_string(first + 3), count,
             total);
  }
  if (specials_ > 0) add_line(text, "NaN, infinite", specials_, total);
  return text.str();
}

}  // namespace natagg::tools
