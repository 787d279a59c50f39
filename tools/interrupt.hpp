// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// SIGINT and SIGTERM as a call in a thread, where locks and allocation are allowed. Construct it
// before the program's other threads, so that they inherit the blocked signals.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace natagg::tools {

class Interrupt {
 public:
  /// Calls `on_signal` in another thread when the process is told to end.
  explicit Interrupt(std::function<void()> on_signal) : on_signal_(std::move(on_signal)) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] { run(); });
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

 private:
  void run() {
    int signal = 0;
    while (sigwait(&signals_, &signal) == 0 && !ending_) on_signal_();
  }

  std::function<void()> on_signal_;
  sigset_t signals_{};
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace natagg::tools
