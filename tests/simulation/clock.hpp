// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A machine's monotonic clock, which need not go as the network's time does: it can leap ahead, as
// when a virtual machine is moved, and stand still for a while without catching up.
#pragma once

#include <algorithm>

#include "simulation/network.hpp"

namespace natagg::simulation {

class Clock {
 public:
  /// What it reads at `now`.
  [[nodiscard]] Time read(Time now) const {
    return now < stands_until_ ? stands_at_ : now + ahead_;
  }

  /// When it reads `reading` or more: `now` or later.
  [[nodiscard]] Time when(Time reading, Time now) const {
    if (reading == kNever || reading <= read(now)) return reading == kNever ? kNever : now;
    return std::max(stands_until_, reading - ahead_);
  }

  void leap(Time by) {
    ahead_ += by;
    stands_at_ += by;
  }

  /// Stands from `now` until then, and goes on from what it read.
  void stand(Time now, Time until) {
    stands_at_ = read(now);
    stands_until_ = std::max(stands_until_, until);
    ahead_ = stands_at_ - stands_until_;
  }

 private:
  Time ahead_ = 0;  // of the network's time, while it goes
  Time stands_until_ = 0;
  Time stands_at_ = 0;
};

}  // namespace natagg::simulation
