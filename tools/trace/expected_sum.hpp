// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What an aggregator must answer to the contributions of a chunk, added by the scalar reference and
// in 80 bits always: nothing of the shard's slots or of its short cuts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "proto/rounding.hpp"

namespace natagg::tools {

class ExpectedSum {
 public:
  explicit ExpectedSum(std::size_t count) : sums_(count), carries_(count), specials_(count) {}

  /// `bytes` are well formed, and as many as all others.
  void add(std::span<const std::uint8_t> bytes);

  /// The bytes of the sum; `first` is the operation's element that comes first. Ends its use.
  [[nodiscard]] std::vector<std::uint8_t> result(std::uint64_t first,
                                                 const proto::RoundingKey& key);

 private:
  std::vector<std::int64_t> sums_;
  std::vector<std::int16_t> carries_;   // the upper 16 bits
  std::vector<std::uint8_t> specials_;  // a special byte, or 0 for a finite sum
};

/// Whether every byte is nat8.
[[nodiscard]] bool well_formed(std::span<const std::uint8_t> bytes);

}  // namespace natagg::tools
