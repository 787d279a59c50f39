// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Finds out whether datagrams that leave this host as one large packet (UDP segmentation offload)
// reach an aggregator one by one. A NIC cuts the packet up, but a veth pair and a bridge hand it
// on as it is, and an aggregator that reads raw frames behind them drops it. So two questions leave
// as one packet, and only when both are answered does the path carry such packets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "worker_lib/core/sink.hpp"

namespace natagg::worker {

class SegmentationProbe {
 public:
  /// Not to be asked.
  SegmentationProbe() = default;

  /// For datagrams of `length` bytes at most, which a single question has shown to arrive. The
  /// lengths of the two questions are odd or otherwise unlike those of all others, so that each
  /// answer tells which one it is for.
  SegmentationProbe(std::size_t length, Time now)
      : lengths_{length - 1, length - 2}, state_(Segmentation::kProbing), next_round_(now) {}

  /// Asks `to` with the first bytes of `question`, which is as long as the longest.
  void transmit(const proto::Endpoint& to, std::span<const std::byte> question, Time now,
                Sink& sink);
  [[nodiscard]] Time next_event() const {
    return state_ == Segmentation::kProbing ? next_round_ : kNever;
  }

  /// False when an answer of that length is not for one of the two.
  bool on_answer(std::size_t length);

  [[nodiscard]] Segmentation state() const { return state_; }

 private:
  std::array<std::size_t, 2> lengths_{};
  std::array<bool, 2> answered_{};
  Segmentation state_ = Segmentation::kOff;
  int rounds_ = 0;
  Time next_round_ = kNever;
};

}  // namespace natagg::worker
