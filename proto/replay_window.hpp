// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Which counters of one sender have been seen. A packet carries the lower 32 bits of a counter
// that never repeats; the upper ones follow from the highest that was accepted, because nobody
// loses 2^31 packets in a row (RFC 4303, appendix A, does the same). Counters that the network
// reordered by less than the window's size are told from those that it, or somebody, repeats.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace natagg::proto {

class ReplayWindow {
 public:
  /// Counters that far below the highest are too old to tell.
  static constexpr std::uint64_t kSize = 1024;

  /// The counter whose lower half is `low` and that is nearest to the highest accepted one;
  /// nothing when that has been accepted already, is too old, or never was one.
  [[nodiscard]] std::optional<std::uint64_t> candidate(std::uint32_t low) const {
    const auto ahead = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(highest_));
    const std::uint64_t counter = highest_ + static_cast<std::uint64_t>(std::int64_t{ahead});
    if (ahead > 0) return counter;
    const auto behind = static_cast<std::uint64_t>(-std::int64_t{ahead});
    if (behind >= kSize || behind >= highest_ || bit(counter)) return std::nullopt;
    return counter;
  }

  /// Accepts what candidate() gave, once its packet is known to be authentic.
  void accept(std::uint64_t counter) {
    if (counter > highest_) {
      clear(highest_ + 1, counter);
      highest_ = counter;
    }
    words_[counter % kSize / 64] |= std::uint64_t{1} << counter % 64;
  }

 private:
  [[nodiscard]] bool bit(std::uint64_t counter) const {
    return (words_[counter % kSize / 64] >> counter % 64 & 1) != 0;
  }

  /// Forgets what the places of counters `first` to `last` held before.
  void clear(std::uint64_t first, std::uint64_t last) {
    if (last - first >= kSize) return words_.fill(0);
    for (std::uint64_t c = first; c <= last; ++c) {
      words_[c % kSize / 64] &= ~(std::uint64_t{1} << c % 64);
    }
  }

  std::uint64_t highest_ = 0;  // counters start at 1
  std::array<std::uint64_t, kSize / 64> words_{};
};

}  // namespace natagg::proto
