// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Tells the shards that were joined that this worker is gone, a few times until they confirm.
#pragma once

#include <cstdint>
#include <vector>

#include "worker_lib/core/sink.hpp"

namespace natagg::worker {

class Leaving {
 public:
  /// Starts over with nobody to tell.
  void begin(const Failure& why, Time now);
  void add(const proto::Endpoint& shard, std::uint32_t job, std::uint32_t epoch,
           std::uint16_t rank);

  void transmit(Time now, Sink& sink);
  [[nodiscard]] Time next_event() const { return done() ? kNever : next_round_; }

  /// The echo of a LEAVE.
  void on_leave(const proto::Endpoint& shard, std::uint32_t epoch);

  /// All have confirmed, or were told often enough.
  [[nodiscard]] bool done() const { return farewells_.empty(); }

 private:
  struct Farewell {
    proto::Endpoint shard;
    struct Datagram {
      proto::Header header;
      proto::LeaveBody body;
    } datagram;
  };

  std::vector<Farewell> farewells_;
  proto::LeaveBody body_{};
  std::size_t next_ = 0;
  int rounds_left_ = 0;
  Time next_round_ = kNever;
};

}  // namespace natagg::worker
