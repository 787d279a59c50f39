// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Big-endian integers as they stand in a packet. There is no implicit conversion: a value
// enters through the constructor and leaves through value(), so host and network order
// cannot be mixed up. Alignment is 1, because a UDP payload starts anywhere in a frame.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace natagg::proto {

template <std::unsigned_integral T>
requires(sizeof(T) > 1) class BigEndian {
 public:
  constexpr BigEndian() = default;
  constexpr explicit BigEndian(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_[i] = static_cast<std::uint8_t>(value >> (8 * (sizeof(T) - 1 - i)));
    }
  }

  [[nodiscard]] constexpr T value() const {
    T value = 0;
    for (std::uint8_t byte : bytes_) value = static_cast<T>((value << 8) | byte);
    return value;
  }

  constexpr bool operator==(const BigEndian&) const = default;

 private:
  std::array<std::uint8_t, sizeof(T)> bytes_{};
};

using Be16 = BigEndian<std::uint16_t>;
using Be32 = BigEndian<std::uint32_t>;
using Be64 = BigEndian<std::uint64_t>;

static_assert(sizeof(Be16) == 2 && alignof(Be16) == 1);
static_assert(sizeof(Be32) == 4 && alignof(Be32) == 1);
static_assert(sizeof(Be64) == 8 && alignof(Be64) == 1);
static_assert(std::is_trivially_copyable_v<Be64>);

}  // namespace natagg::proto
