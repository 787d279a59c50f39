// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/control.hpp"

#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

namespace natagg::aggregator {
namespace {

sigset_t our_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

}  // namespace

SignalMask::SignalMask() {
  const sigset_t signals = our_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  CPU_ZERO(&cpus_);
  sched_getaffinity(0, sizeof(cpus_), &cpus_);
}

ControlThread::ControlThread(const SignalMask& mask, ControlActions actions,
                             std::chrono::seconds report_period)
    : cpus_(mask.cpus()),
      actions_(std::move(actions)),
      report_period_(report_period),
      thread_([this] { run(); }) {}

ControlThread::~ControlThread() {
  done_ = true;
  thread_.join();
  // From here on nobody waits for the second signal, so the kernel shall act on it.
  sigset_t signals = our_signals();
  sigdelset(&signals, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void ControlThread::run() {
  // Not on the main lcore's CPU alone, which this thread would inherit.
  sched_setaffinity(0, sizeof(cpus_), &cpus_);
  using Clock = std::chrono::steady_clock;
  const sigset_t signals = our_signals();
  auto next_report = Clock::now() + report_period_;
  auto next_second = Clock::now();
  bool stopping = false;
  while (!done_) {
    constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 50'000'000};
    const int signal = sigtimedwait(&signals, nullptr, &kPatience);
    if (signal == SIGUSR1) actions_.report();
    if (signal == SIGINT || signal == SIGTERM) {
      if (stopping) {
        spdlog::error("signal {} again: ending at once", signal);
        _exit(128 + signal);
      }
      spdlog::info("signal {}: stopping", signal);
      stopping = true;
      actions_.stop();
    }
    if (report_period_.count() != 0 && Clock::now() >= next_report) {
      next_report += report_period_;
      actions_.report();
    }
    if (!stopping && Clock::now() >= next_second) {
      next_second = Clock::now() + std::chrono::seconds(1);
      actions_.every_second();
    }
  }
}

}  // namespace natagg::aggregator
