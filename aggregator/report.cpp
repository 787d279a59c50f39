// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/report.hpp"

#include <fmt/format.h>

#include <numeric>

namespace natagg::aggregator {

std::uint64_t CounterRow::total() const {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

std::vector<std::string> render_report(std::span<const CounterRow> rows) {
  std::vector<std::string> lines;
  for (const CounterRow& row : rows) {
    if (row.total() == 0) continue;
    std::string line = fmt::format("{:<22} {:>14}", row.name, row.total());
    if (row.values.size() > 1) line += fmt::format("  ({})", fmt::join(row.values, " + "));
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace natagg::aggregator
