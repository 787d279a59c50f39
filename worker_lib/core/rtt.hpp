// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Retransmission time-out from measured round trips. A round trip here includes the wait for the
// slowest rank and for the repair of any rank's loss. An average of those (RFC 6298) would feed on
// itself: each rank would wait as long as the others' waits had been. So the time-out follows the
// shortest of the latest round trips, which the network alone made; a result of any chunk restarts
// it (channel.cpp), so that it measures silence, and the few probes of a long silence back off.
#pragma once

#include <algorithm>

#include "worker_lib/core/time.hpp"

namespace natagg::worker {

class RttEstimator {
 public:
  RttEstimator(Time min_rto, Time max_rto)
      : min_rto_(min_rto), max_rto_(max_rto), shortest_rto_(std::min(4 * min_rto, max_rto)) {}

  /// A round trip of a packet that was sent once: a retransmitted one's would be ambiguous.
  void sample(Time rtt, Time now) {
    if (rtt <= base_ || now - base_since_ > kBaseAge) {
      base_ = rtt <= base_ ? rtt : base_ + base_ / 8;
      base_since_ = now;
    }
    smoothed_ += smoothed_ == 0 ? rtt : (rtt - smoothed_) / 8;
    this_block_ = std::min(this_block_, rtt);
    shortest_rto_ = std::clamp(kMargin * shortest(), min_rto_, max_rto_);
    if (++samples_ % kBlock == 0) {
      last_block_ = this_block_;
      this_block_ = kNever;
    }
  }

  /// The time-out has passed without an answer: wait twice as long for the next.
  void back_off() { backoff_ = std::min(backoff_ + 1, 16); }

  /// Something was answered.
  void progress() { backoff_ = 0; }

  [[nodiscard]] Time rto() const { return std::min(shortest_rto_ << backoff_, max_rto_); }
  [[nodiscard]] Time smoothed() const { return smoothed_; }

  /// The shortest of all round trips, when nothing waited anywhere; kNever before the first.
  [[nodiscard]] Time base() const { return base_; }

  /// The shortest of the latest 8 to 16 round trips, kNever before the first.
  [[nodiscard]] Time shortest() const { return std::min(last_block_, this_block_); }

 private:
  static constexpr unsigned kBlock = 8;
  static constexpr Time kBaseAge = 10'000'000'000;  // paths change
  static constexpr Time kMargin = 3;                // for jitter, beyond min_rto

  Time min_rto_;
  Time max_rto_;
  Time shortest_rto_;
  Time base_ = kNever;
  Time base_since_ = 0;
  Time smoothed_ = 0;
  Time this_block_ = kNever;
  Time last_block_ = kNever;
  unsigned samples_ = 0;
  int backoff_ = 0;
};

}  // namespace natagg::worker
