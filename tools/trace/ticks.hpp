// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The processor's time-stamp counter where there is one, else nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace natagg::tools {

inline std::int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

#if defined(__x86_64__)
inline constexpr bool kTicksAreCycles = true;  // of the nominal clock
inline std::uint64_t ticks() {
  return __rdtsc();
}
#else
inline constexpr bool kTicksAreCycles = false;
inline std::uint64_t ticks() {
  return static_cast<std::uint64_t>(monotonic_ns());
}
#endif

}  // namespace natagg::tools
