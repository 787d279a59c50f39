// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How many chunks a worker keeps under way on one shard. It doubles each round trip until the
// first loss, then grows by one a round trip and shrinks by a third on loss, at most once a round
// trip: a lost packet among hundreds says little where n ranks clock each other.
#pragma once

#include <algorithm>
#include <cstddef>

#include "worker_lib/core/time.hpp"

namespace natagg::worker {

class CongestionWindow {
 public:
  explicit CongestionWindow(std::size_t limit)
      : limit_(static_cast<double>(limit)), size_(std::min(kInitial, limit_)) {}

  void on_result() { size_ = std::min(limit_, size_ + (slow_start_ ? 1.0 : 1.0 / size_)); }

  void on_loss(Time now, Time rtt) {
    if (now - last_reduction_ < rtt) return;
    last_reduction_ = now;
    slow_start_ = false;
    size_ = std::max(std::min(kFloor, limit_), size_ * 0.67);
  }

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }

 private:
  static constexpr double kInitial = 16;
  static constexpr double kFloor = 4;

  double limit_;
  double size_;
  bool slow_start_ = true;
  Time last_reduction_ = 0;
};

}  // namespace natagg::worker
