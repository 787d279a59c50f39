// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How long the chunks of one session have been open whose operation takes partial results: a list
// through the slots in the order of opening, so that the first is always the next to be overdue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "aggregator/core/peer.hpp"

namespace natagg::aggregator {

class StragglerWatch {
 public:
  /// For `window` slots, a power of two. Throws std::bad_alloc.
  StragglerWatch(std::uint32_t window, Time deadline)
      : mask_(window - 1), deadline_(deadline), entries_(window) {}

  /// The chunk was opened; its slot is not being watched.
  void start(std::uint32_t sequence, Time now);

  /// It is finished. Does nothing when it is not watched.
  void stop(std::uint32_t sequence);

  /// A chunk whose deadline has passed since it was opened, each once.
  [[nodiscard]] std::optional<std::uint32_t> take_overdue(Time now);

  /// It was taken, and has not been stopped since.
  [[nodiscard]] bool is_overdue(std::uint32_t sequence) const {
    return entries_[sequence & mask_].state == State::kOverdue;
  }

  /// This process was not running for `gap`, which is not the ranks' lateness.
  void forgive(Time gap);

 private:
  enum class State : std::uint8_t { kIdle, kWaiting, kOverdue };

  struct Entry {
    Time opened = 0;
    std::uint32_t sequence = 0;
    std::uint32_t previous = 0;
    std::uint32_t next = 0;
    State state = State::kIdle;
  };

  static constexpr std::uint32_t kEnd = 0xFFFF'FFFF;

  void unlink(const Entry& entry);

  std::uint32_t mask_;
  Time deadline_;
  std::uint32_t head_ = kEnd;
  std::uint32_t tail_ = kEnd;
  std::vector<Entry> entries_;  // one a slot
};

}  // namespace natagg::aggregator
