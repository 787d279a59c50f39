// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Time from the CPU's counter: no system call, a few nanoseconds.
#pragma once

#include <rte_cycles.h>

#include "aggregator/core/shard.hpp"

namespace natagg::aggregator::io {

class Clock {
 public:
  Clock() : ns_per_tick_(1e9 / static_cast<double>(rte_get_tsc_hz())), start_(rte_rdtsc()) {}

  /// Since this clock was made; a double keeps it exact to a few nanoseconds for a year.
  [[nodiscard]] Time now() const {
    return static_cast<Time>(static_cast<double>(rte_rdtsc() - start_) * ns_per_tick_);
  }

 private:
  double ns_per_tick_;
  std::uint64_t start_;
};

}  // namespace natagg::aggregator::io
