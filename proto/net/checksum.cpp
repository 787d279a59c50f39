// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/net/checksum.hpp"

#include <bit>
#include <cstring>

namespace natagg::net {

// Adds words of native order, four at a time, which the compiler turns into vector code: the sum
// of byte-swapped words is the byte-swapped sum (RFC 1071, section 2B).
std::uint16_t ones_sum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t words;
    std::memcpy(&words, bytes.data() + i, sizeof(words));
    sum += (words & 0xFFFF'FFFF) + (words >> 32);
  }
  if (i < bytes.size()) {
    std::uint64_t words = 0;
    std::memcpy(&words, bytes.data() + i, bytes.size() - i);
    sum += (words & 0xFFFF'FFFF) + (words >> 32);
  }
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  const auto folded = static_cast<std::uint16_t>(sum);
  if constexpr (std::endian::native == std::endian::big) return folded;
  return static_cast<std::uint16_t>(folded << 8 | folded >> 8);
}

}  // namespace natagg::net
