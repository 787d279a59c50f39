// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The Internet checksum (RFC 1071). A sum here is the one's complement sum of big-endian 16-bit
// words, folded to 16 bits, as a host number; the field in a header is its complement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace natagg::net {

[[nodiscard]] constexpr std::uint16_t ones_add(std::uint16_t a, std::uint16_t b) {
  const std::uint32_t sum = std::uint32_t{a} + b;
  return static_cast<std::uint16_t>(sum + (sum >> 16));
}

/// Of `bytes`, with a zero byte appended when their number is odd.
[[nodiscard]] std::uint16_t ones_sum(std::span<const std::byte> bytes);

/// Of two stretches of bytes that stand one after the other, from the sums of each.
[[nodiscard]] constexpr std::uint16_t ones_append(std::uint16_t first, std::size_t first_length,
                                                  std::uint16_t second) {
  const bool odd = first_length % 2 != 0;
  return ones_add(first, odd ? static_cast<std::uint16_t>(second << 8 | second >> 8) : second);
}

/// Of the pseudo header that UDP adds to its own bytes. Addresses are host numbers.
[[nodiscard]] constexpr std::uint16_t pseudo_header_sum(std::uint32_t source,
                                                        std::uint32_t destination,
                                                        std::uint8_t protocol,
                                                        std::uint16_t length) {
  std::uint32_t sum = (source >> 16) + (source & 0xFFFF) + (destination >> 16) +
                      (destination & 0xFFFF) + protocol + length;
  sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<std::uint16_t>(sum + (sum >> 16));
}

}  // namespace natagg::net
