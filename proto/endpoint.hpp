// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// An IPv4 address and UDP port in host byte order, as the sans-I/O cores know a peer.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace natagg::proto {

struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;

  constexpr auto operator<=>(const Endpoint&) const = default;
};

/// "10.0.0.1:4790".
[[nodiscard]] std::string to_string(const Endpoint& endpoint);

}  // namespace natagg::proto
