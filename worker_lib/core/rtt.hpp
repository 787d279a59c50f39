// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Retransmission time-out from measured round trips (RFC 6298). A round trip here includes the
// wait for the slowest rank, so the estimate follows stragglers by itself.
#pragma once

#include <algorithm>

#include "worker_lib/core/time.hpp"

namespace natagg::worker {

class RttEstimator {
 public:
  RttEstimator(Time min_rto, Time max_rto)
      : min_rto_(min_rto), max_rto_(max_rto), base_(std::min(4 * min_rto, max_rto)) {}

  /// A round trip of a packet that was sent once: a retransmitted one's would be ambiguous.
  void sample(Time rtt) {
    if (smoothed_ == 0) {
      smoothed_ = rtt;
      variation_ = rtt / 2;
    } else {
      const Time error = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
      variation_ += (error - variation_) / 4;
      smoothed_ += (rtt - smoothed_) / 8;
    }
    base_ = std::clamp(smoothed_ + 4 * variation_, min_rto_, max_rto_);
  }

  /// The time-out has passed without an answer: wait twice as long for the next.
  void back_off() { backoff_ = std::min(backoff_ + 1, 16); }

  /// Something was answered.
  void progress() { backoff_ = 0; }

  [[nodiscard]] Time rto() const { return std::min(base_ << backoff_, max_rto_); }
  [[nodiscard]] Time smoothed() const { return smoothed_; }

 private:
  Time min_rto_;
  Time max_rto_;
  Time base_;
  Time smoothed_ = 0;
  Time variation_ = 0;
  int backoff_ = 0;
};

}  // namespace natagg::worker
