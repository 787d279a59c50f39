// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Where the ranks of one machine meet outside the network: a barrier and one number in a file that
// all of them map.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace natagg::bench {

class Meeting {
 public:
  /// `path` is a new or empty file, the same for all ranks. Throws std::system_error. A wait that
  /// takes longer than `limit` throws std::runtime_error.
  Meeting(const std::string& path, std::uint32_t rank, std::uint32_t world,
          std::chrono::seconds limit);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting();

  /// Returns once all ranks have called it as often. Sleeps, and calls `idle` every millisecond.
  void wait(const std::function<void()>& idle);

  /// Rank 0's number, at all ranks. All ranks wait() for each other between two calls.
  std::uint64_t agree(std::uint64_t number, const std::function<void()>& idle);

 private:
  struct Shared {
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> round;
    std::atomic<std::uint64_t> number;
  };
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

  std::uint32_t rank_;
  std::uint32_t world_;
  std::chrono::seconds limit_;
  Shared* shared_ = nullptr;
};

}  // namespace natagg::bench
