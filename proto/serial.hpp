// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Serial-number arithmetic (RFC 1982) for 32-bit chunk sequence numbers, which wrap in
// production: an aggregator starts every session shortly below the wrap.
#pragma once

#include <cstdint>

namespace natagg::proto {

/// Signed distance from `from` to `to`, in [-2^31, 2^31 - 1]; positive when `to` is later.
[[nodiscard]] constexpr std::int32_t serial_distance(std::uint32_t from, std::uint32_t to) {
  return static_cast<std::int32_t>(to - from);
}

/// True when `a` comes before `b`.
[[nodiscard]] constexpr bool serial_less(std::uint32_t a, std::uint32_t b) {
  return serial_distance(a, b) > 0;
}

static_assert(serial_less(0xFFFFFFFF, 0) && !serial_less(0, 0xFFFFFFFF) && !serial_less(5, 5));

}  // namespace natagg::proto
