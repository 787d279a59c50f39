// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// IPv4 addresses as people write them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace natagg::aggregator {

/// The host number of "10.0.0.1" or "10.0.0.1/24"; nothing for any other text.
[[nodiscard]] inline std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](unsigned max) -> std::optional<std::uint32_t> {
    unsigned value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    const bool leading_zero = stop - at > 1 && *at == '0';
    if (error != std::errc{} || value > max || leading_zero) return std::nullopt;
    at = stop;
    return value;
  };
  std::uint32_t address = 0;
  for (int i = 0; i < 4; ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto part = number(255);
    if (!part) return std::nullopt;
    address = address << 8 | *part;
  }
  if (at != end && (*at++ != '/' || !number(32))) return std::nullopt;
  return at == end ? std::optional{address} : std::nullopt;
}

}  // namespace natagg::aggregator
