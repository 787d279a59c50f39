// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Signals, taken by one thread that waits for them: there are no handlers, and nothing to do in
// the datapath but read a flag.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace natagg::aggregator {

/// To be called first, in the only thread, so that all later ones inherit it. Keeps the CPUs that
/// the process may use, which EAL takes from the main thread.
class SignalMask {
 public:
  SignalMask();
  [[nodiscard]] const cpu_set_t& cpus() const { return cpus_; }

 private:
  cpu_set_t cpus_;
};

struct ControlActions {
  std::function<void()> stop;          // SIGINT, SIGTERM; the second time the process ends at once
  std::function<void()> report;        // SIGUSR1, and every period
  std::function<void()> every_second;  // looks after the link
};

class ControlThread {
 public:
  /// `report_period` 0: only at SIGUSR1.
  ControlThread(const SignalMask& mask, ControlActions actions, std::chrono::seconds report_period);
  ~ControlThread();
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

 private:
  void run();

  const cpu_set_t cpus_;
  const ControlActions actions_;
  const std::chrono::seconds report_period_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace natagg::aggregator
