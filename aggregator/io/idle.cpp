// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/idle.hpp"

#include <sys/prctl.h>

#include <ctime>

namespace natagg::aggregator::io {

void Idle::prepare_thread() const {
  constexpr unsigned long kSlack_ns = 1000;
  if (polite_) prctl(PR_SET_TIMERSLACK, kSlack_ns, 0, 0, 0);
}

void Idle::sleep(std::int64_t nap_ns) {
  timespec nap{.tv_sec = 0, .tv_nsec = nap_ns};
  nanosleep(&nap, nullptr);
}

}  // namespace natagg::aggregator::io
