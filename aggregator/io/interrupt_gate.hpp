// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Keeps DPDK's interrupt thread away from devices while lcores use them. net_memif takes a peer's
// memory away in that thread, in the middle of a burst, when the peer dies; behind the gate it
// finds every lcore between two turns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

namespace natagg::aggregator::io {

class InterruptGate {
 public:
  /// Lcores have numbers below `lcores`. From now on the interrupt thread runs for an instant about
  /// every 10 ms. Throws std::runtime_error.
  explicit InterruptGate(std::size_t lcores);
  /// Lcores have stopped.
  ~InterruptGate();

  /// Returns when the interrupt thread stands still, which it does until the gate is destroyed: for
  /// what is done to devices after lcores have stopped.
  void hold();
  InterruptGate(const InterruptGate&) = delete;
  InterruptGate& operator=(const InterruptGate&) = delete;

  /// What an lcore does with devices, it does while it has one of these.
  class Turn {
   public:
    /// Null: there is no gate.
    Turn(InterruptGate* gate, std::size_t lcore) : gate_(gate), lcore_(lcore) {
      if (gate_ != nullptr) gate_->enter(lcore_);
    }
    ~Turn() {
      if (gate_ != nullptr) gate_->leave(lcore_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    InterruptGate* gate_;
    std::size_t lcore_;
  };

 private:
  void enter(std::size_t lcore);
  void leave(std::size_t lcore) { inside_[lcore].flag.store(false, std::memory_order_release); }
  /// In the interrupt thread: lets lcores work for a while, then returns when none is inside.
  static void on_alarm(void* gate);
  void let_lcores_work();
  void wait_for_lcores() const;
  [[nodiscard]] int arm();  // 0 or DPDK's error

  struct alignas(64) Inside {
    std::atomic<bool> flag = false;
  };
  std::size_t lcores_;
  std::unique_ptr<Inside[]> inside_;
  std::atomic<bool> closed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool waiting_ = false;  // the interrupt thread, while lcores work
  bool holding_ = false;
  bool ending_ = false;
};

}  // namespace natagg::aggregator::io
