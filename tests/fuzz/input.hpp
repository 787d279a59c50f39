// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A fuzzer's input, read from the front; and how a target says that something is wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

namespace natagg::fuzz {

/// Takes bytes from the front, and zeros after the last.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  /// `count` bytes, at most 8, the first the lowest.
  std::uint64_t take(std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count && i < bytes_.size(); ++i) {
      value |= std::uint64_t{bytes_[i]} << (8 * i);
    }
    bytes_ = bytes_.subspan(std::min(count, bytes_.size()));
    return value;
  }

  std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)); }

  /// One byte's choice among `count` things.
  std::size_t below(std::size_t count) { return byte() % count; }

  /// Up to `count` bytes as they are.
  std::span<const std::uint8_t> bytes(std::size_t count) {
    const auto front = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(front.size());
    return front;
  }

  [[nodiscard]] std::span<const std::uint8_t> rest() const { return bytes_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// Ends the process with `what` when an invariant does not hold: libFuzzer then keeps the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  __builtin_trap();
}

}  // namespace natagg::fuzz
