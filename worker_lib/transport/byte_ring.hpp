// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Bytes from one thread to another through a fixed piece of memory: neither allocates, waits for
// the other or makes a system call.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace natagg::worker {

class ByteRing {
 public:
  /// Touches all of its memory, so that no page is missing later. Throws std::bad_alloc.
  explicit ByteRing(std::size_t bytes) : memory_(bytes) {}

  /// The writing thread: all of `pieces`, which the other sees at once, or, where that finds no
  /// room, nothing and false.
  template <std::size_t kPieces>
  [[nodiscard]] bool put(const std::array<std::span<const std::byte>, kPieces>& pieces) {
    std::size_t size = 0;
    for (const auto& piece : pieces) size += piece.size();
    std::size_t head = head_.load(std::memory_order_relaxed);
    if (size > memory_.size() - (head - tail_.load(std::memory_order_acquire))) return false;
    for (const auto& piece : pieces) {
      copy_in(head, piece);
      head += piece.size();
    }
    head_.store(head, std::memory_order_release);
    return true;
  }

  /// The reading thread: all that is there, in two pieces where it goes round the end.
  [[nodiscard]] std::array<std::span<const std::byte>, 2> contents() const {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    const std::size_t size = head_.load(std::memory_order_acquire) - tail;
    const std::span<const std::byte> memory(memory_);
    const std::size_t at = tail % memory.size();
    const std::size_t first = std::min(size, memory.size() - at);
    return {memory.subspan(at, first), memory.first(size - first)};
  }

  /// The reading thread: the first `bytes` of contents() are done with.
  void release(std::size_t bytes) { tail_.fetch_add(bytes, std::memory_order_release); }

 private:
  void copy_in(std::size_t position, std::span<const std::byte> piece) {
    const std::size_t at = position % memory_.size();
    const std::size_t first = std::min(piece.size(), memory_.size() - at);
    std::copy_n(piece.begin(), first, memory_.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy(piece.begin() + static_cast<std::ptrdiff_t>(first), piece.end(), memory_.begin());
  }

  static constexpr std::size_t kCacheLine = 64;

  std::vector<std::byte> memory_;
  alignas(kCacheLine) std::atomic<std::size_t> head_ = 0;  // bytes ever put
  alignas(kCacheLine) std::atomic<std::size_t> tail_ = 0;  // and released
};

}  // namespace natagg::worker
