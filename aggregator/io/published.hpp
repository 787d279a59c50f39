// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A lcore's counters as other threads see them: a copy that the lcore renews every 10 ms or so.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "aggregator/core/shard.hpp"
#include "aggregator/io/io_counters.hpp"

namespace natagg::aggregator::io {

/// Each number is whole; two numbers may be of different renewals.
class Published {
 public:
  void publish(const IoCounters& io, const Counters& shard, const Shard::Usage& usage) {
    std::size_t at = 0;
    for (std::uint64_t value : io.values()) store(at++, value);
    for (std::uint64_t value : shard.values()) store(at++, value);
    store(at++, usage.jobs);
    store(at++, usage.ready_sessions);
    store(at, usage.open_slots);
  }

  /// The counters of kIoCounters, then of kCounters, then kGauges.
  static constexpr std::array<std::string_view, 3> kGauges{"jobs_now", "ready_sessions_now",
                                                           "open_slots_now"};
  static constexpr std::size_t kSize = kIoCounters.size() + kCounters.size() + kGauges.size();

  [[nodiscard]] std::uint64_t operator[](std::size_t index) const {
    return values_[index].load(std::memory_order_relaxed);
  }
  [[nodiscard]] static constexpr std::string_view name(std::size_t index) {
    if (index < kIoCounters.size()) return kIoCounters[index].name;
    index -= kIoCounters.size();
    return index < kCounters.size() ? kCounters[index].name : kGauges[index - kCounters.size()];
  }

 private:
  void store(std::size_t at, std::uint64_t value) {
    values_[at].store(value, std::memory_order_relaxed);
  }
  alignas(64) std::array<std::atomic<std::uint64_t>, kSize> values_{};
};

}  // namespace natagg::aggregator::io
