// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How many chunks a worker keeps under way on one shard: as many as the path and the aggregator
// hold, and some more so that neither idles. More would only wait in queues, fill the aggregator's
// receive ring where n ranks send at once, and spread the slots in use beyond its caches.
//
// It judges by the average round trip, as TCP Vegas (Brakmo and Peterson, 1995) and TIMELY (Mittal
// et al., 2015) do, once a round, that is, once a window's worth of answers. Let the base be the
// shortest round trip seen. Until one and a half of it nothing much waits anywhere, and the window
// grows: it doubles each round at first, later by a quarter. Beyond twice the base it shrinks by an
// eighth, but not below 128 KiB: so little does no harm, and where processes share a core the round
// trip says little. A loss takes a third and a mark of congestion a fifth, at most once a round
// trip, since a lost packet among hundreds says little where n ranks clock each other.
//
// A round trip holds the wait for the slowest rank, too. Then the others' windows shrink, which
// costs nothing: they are waiting anyway.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "worker_lib/core/time.hpp"

namespace natagg::worker {

class CongestionWindow {
 public:
  /// At most `limit` chunks of up to `chunk_bytes` each.
  CongestionWindow(std::size_t limit, std::size_t chunk_bytes)
      : limit_(static_cast<double>(limit)),
        small_(std::clamp(kSmallBytes / static_cast<double>(chunk_bytes),
                          std::min(kInitial, limit_), limit_)),
        size_(std::min(kInitial, limit_)) {}

  /// A chunk that was sent once was answered after `rtt`, where `base` is the shortest of all.
  /// `sent` counts the packets that were sent before it, `next` those until now.
  void on_round_trip(Time rtt, Time base, std::uint64_t sent, std::uint64_t next) {
    base_ = base;
    waited_ += rtt;
    ++answered_;
    if (sent < round_end_) return;
    judge(waited_ / answered_, static_cast<double>(next - sent));
    round_end_ = next;
    waited_ = answered_ = 0;
  }

  void on_loss(Time now, Time rtt) { reduce(kLossFactor, now, rtt); }

  /// A queue on the way is filling up, and has marked a packet rather than drop it.
  void on_mark(Time now, Time rtt) { reduce(kMarkFactor, now, rtt); }

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }

 private:
  static constexpr double kInitial = 16;
  static constexpr double kFloor = 4;
  static constexpr double kLossFactor = 0.67;
  static constexpr double kMarkFactor = 0.8;         // the queue is shorter then (RFC 8511)
  static constexpr double kSmallBytes = 128 * 1024;  // what 10 Gbit/s carries in 100 us

  void reduce(double factor, Time now, Time rtt) {
    slow_start_ = false;
    if (now - last_reduction_ < rtt) return;
    last_reduction_ = now;
    size_ = std::max(std::min(kFloor, limit_), size_ * factor);
  }

  /// At the end of a round of `rtt` on average, in which `used` chunks were under way.
  void judge(Time rtt, double used) {
    const bool queues = rtt > 2 * base_;
    if (queues && size_ > small_) {
      slow_start_ = false;
      size_ = std::max(small_, size_ - size_ / 8);
    } else if (used >= size_ / 2) {  // else a larger window would not have mattered
      size_ = std::min(limit_, size_ + growth(rtt));
    }
  }

  [[nodiscard]] double growth(Time rtt) const {
    if (slow_start_) return size_;
    if (rtt < base_ + base_ / 2) return std::max(size_ / 4, 1.0);
    return size_ < small_ ? 1.0 : 0.0;
  }

  double limit_;
  double small_;
  double size_;
  bool slow_start_ = true;
  Time last_reduction_ = 0;
  Time base_ = kNever;
  Time waited_ = 0;  // for the answers of this round
  Time answered_ = 0;
  std::uint64_t round_end_ = 0;
};

}  // namespace natagg::worker
