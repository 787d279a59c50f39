// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Counters as people read them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace natagg::aggregator {

struct CounterRow {
  std::string name;
  std::vector<std::uint64_t> values;  // a shard each; one value when it belongs to the device

  [[nodiscard]] std::uint64_t total() const;
};

/// A line for each row that is not all zero: name, total, and the shards' parts when there are
/// several.
[[nodiscard]] std::vector<std::string> render_report(std::span<const CounterRow> rows);

}  // namespace natagg::aggregator
