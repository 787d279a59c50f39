// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/interrupt_gate.hpp"

#include <rte_alarm.h>

#include <chrono>
#include <stdexcept>

#include "aggregator/io/eal.hpp"
#include "aggregator/io/idle.hpp"

namespace natagg::aggregator::io {
namespace {

constexpr std::chrono::milliseconds kWork{10};
constexpr std::int64_t kLook_ns = 10'000;

}  // namespace

InterruptGate::InterruptGate(std::size_t lcores)
    : lcores_(lcores), inside_(std::make_unique<Inside[]>(lcores)) {
  if (const int error = arm(); error != 0) {
    throw std::runtime_error(describe_failure("rte_eal_alarm_set", "the interrupt gate", error));
  }
}

InterruptGate::~InterruptGate() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  rte_eal_alarm_cancel(on_alarm, this);  // waits for one that is running
}

// Alarms run in the interrupt thread, between the events of devices. One that is due when another
// ends is run before the thread looks at devices.
int InterruptGate::arm() {
  constexpr std::uint64_t kSoon_us = 20;
  return rte_eal_alarm_set(kSoon_us, on_alarm, this);
}

void InterruptGate::hold() {
  std::unique_lock lock(mutex_);
  holding_ = true;
  changed_.wait(lock, [this] { return waiting_; });
}

void InterruptGate::on_alarm(void* gate) {
  static_cast<InterruptGate*>(gate)->let_lcores_work();
}

void InterruptGate::let_lcores_work() {
  do {
    closed_.store(false);
    {
      std::unique_lock lock(mutex_);
      waiting_ = true;
      changed_.notify_all();
      changed_.wait_for(lock, kWork, [this] { return ending_; });
      if (holding_) changed_.wait(lock, [this] { return ending_; });
      waiting_ = false;
      if (ending_) return;
    }
    closed_.store(true);
    wait_for_lcores();
  } while (arm() != 0);  // for want of memory: devices have to wait
}

void InterruptGate::wait_for_lcores() const {
  for (std::size_t lcore = 0; lcore < lcores_; ++lcore) {
    while (inside_[lcore].flag.load()) Idle::sleep(kLook_ns);
  }
}

// Either the interrupt thread sees the flag or the lcore sees the gate closed: both orders are
// sequentially consistent.
void InterruptGate::enter(std::size_t lcore) {
  for (;;) {
    inside_[lcore].flag.store(true);
    if (!closed_.load()) return;
    inside_[lcore].flag.store(false);
    Idle::sleep(kLook_ns);
  }
}

}  // namespace natagg::aggregator::io
