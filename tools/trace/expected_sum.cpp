// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/expected_sum.hpp"

#include <limits>

#include "proto/kernels.hpp"
#include "proto/nat8.hpp"

namespace natagg::tools {
namespace {

const Kernels& scalar() {
  static const Kernels& kernels = *find_kernels("scalar");
  return kernels;
}

/// NaN wins, Inf + -Inf is NaN. `a` may be 0, for a finite sum.
std::uint8_t add_specials(std::uint8_t a, std::uint8_t b) {
  return a == 0 || a == b ? b : nat8::kNan;
}

}  // namespace

void ExpectedSum::add(std::span<const std::uint8_t> bytes) {
  scalar().accumulate_wide(bytes.data(), sums_.data(), carries_.data(), bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (nat8::is_special(bytes[i])) specials_[i] = add_specials(specials_[i], bytes[i]);
  }
}

std::vector<std::uint8_t> ExpectedSum::result(std::uint64_t first, const proto::RoundingKey& key) {
  // Sums beyond 63 bits clip to the largest code, as the largest that fits does.
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const bool fits = carries_[i] == (sums_[i] < 0 ? -1 : 0) && sums_[i] >= -largest;
    if (!fits) sums_[i] = carries_[i] < 0 ? -largest : largest;
  }
  std::vector<std::uint8_t> bytes(sums_.size());
  nat8::Tally tally;
  scalar().recompress(sums_.data(), bytes.data(), bytes.size(), first, key, tally);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (specials_[i] != 0) bytes[i] = specials_[i];
  }
  return bytes;
}

bool well_formed(std::span<const std::uint8_t> bytes) {
  return !scalar().scan(bytes.data(), bytes.size()).malformed;
}

}  // namespace natagg::tools
