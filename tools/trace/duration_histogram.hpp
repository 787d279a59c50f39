// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How often which duration occurred, to within 1/32, in a fixed small memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace natagg::tools {

class DurationHistogram {
 public:
  void add(std::uint64_t duration) {
    ++counts_[bucket(duration)];
    ++count_;
    largest_ = std::max(largest_, duration);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t largest() const { return largest_; }

  /// The least that a share `q` (0 to 1) of all do not exceed, to within a bucket; 0 for none.
  [[nodiscard]] std::uint64_t quantile(double q) const {
    const auto rank = static_cast<std::uint64_t>(q * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > rank) return std::min(upper_end(i), largest_);
    }
    return largest_;
  }

 private:
  static constexpr unsigned kBits = 5;  // of a duration that tell its bucket, below the leading one
  static constexpr std::size_t kEach = std::size_t{1} << kBits;

  static std::size_t bucket(std::uint64_t duration) {
    if (duration < kEach) return duration;
    const auto shift = static_cast<unsigned>(std::bit_width(duration)) - 1 - kBits;
    return (shift + 1) * kEach + (duration >> shift) - kEach;
  }
  static std::uint64_t upper_end(std::size_t bucket) {
    if (bucket < kEach) return bucket;
    const std::size_t shift = bucket / kEach - 1;
    return ((bucket % kEach + kEach + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (64 - kBits + 1) * kEach> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t largest_ = 0;
};

}  // namespace natagg::tools
