// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The chunks a worker has under way on one shard, in a ring indexed by sequence number, and lists
// through that ring in the order of sending: the oldest is always the next to time out, so no
// chunk needs a timer of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "worker_lib/core/time.hpp"

namespace natagg::worker {

/// One chunk from its first DATA to its RESULT.
struct Flight {
  enum class State : std::uint8_t {
    kDone,       // has its result, or was never sent
    kSent,       // no answer yet
    kConfirmed,  // the aggregator has it and waits for other ranks
    kLost,       // to be sent again
  };

  static constexpr std::uint8_t kMostRepeats = 10;

  std::uint64_t operation_id = 0;
  std::uint64_t element = 0;
  Time sent = 0;                  // last
  std::uint64_t order = 0;        // of the last sending among all on this shard
  std::uint64_t first_order = 0;  // of the first sending
  std::uint32_t operation = 0;    // index on the wire
  std::uint16_t count = 0;
  std::uint16_t missing = 0;        // lowest rank it waits for, when it was ever confirmed
  std::uint16_t missing_count = 0;  // ranks it waits for; 0: never confirmed
  std::uint16_t previous = 0;
  std::uint16_t next = 0;
  std::uint8_t repeats = 0;  // copies sent after the first, at most kMostRepeats
  bool segmentable = false;  // when first sent
  bool held_back = false;    // not taken yet: `missing` is a window behind
  State state = State::kDone;
};

/// A doubly linked list through a ring of flights.
class FlightList {
 public:
  static constexpr std::uint16_t kEnd = 0xFFFF;

  [[nodiscard]] bool empty() const { return head_ == kEnd; }
  [[nodiscard]] std::uint16_t head() const { return head_; }
  [[nodiscard]] std::uint16_t tail() const { return tail_; }

  void push_back(std::vector<Flight>& ring, std::uint16_t i) {
    ring[i].previous = tail_;
    ring[i].next = kEnd;
    (tail_ == kEnd ? head_ : ring[tail_].next) = i;
    tail_ = i;
  }

  void remove(std::vector<Flight>& ring, std::uint16_t i) {
    const Flight& flight = ring[i];
    (flight.previous == kEnd ? head_ : ring[flight.previous].next) = flight.next;
    (flight.next == kEnd ? tail_ : ring[flight.next].previous) = flight.previous;
  }

 private:
  std::uint16_t head_ = kEnd;
  std::uint16_t tail_ = kEnd;
};

}  // namespace natagg::worker
