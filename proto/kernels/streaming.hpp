// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Decoding with stores that pass by the caches: a line is written without having been read.
// Included by each instruction set's kernels.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "proto/kernels.hpp"
#include "proto/nat8.hpp"

namespace natagg {
namespace {

constexpr std::size_t kLineBytes = 64;

/// The bits of code 0's float32. No template of the library, which the linker might take from here
/// for all others.
[[gnu::always_inline]] inline std::uint32_t code0_bits(int shift, std::uint32_t divisor) {
  const float smallest = nat8::decode_float(0, shift, divisor);
  std::uint32_t bits;
  __builtin_memcpy(&bits, &smallest, sizeof(bits));
  return bits;
}

/// Gives the whole cache lines of `out` to `lines`, called as a Decode<float> with them, and what
/// is before and after to `plain`.
template <typename Lines>
[[gnu::always_inline]] inline void decode_by_lines(const std::uint8_t* in, float* out,
                                                   std::size_t count, int shift,
                                                   std::uint32_t divisor,
                                                   Kernels::Decode<float>* plain,
                                                   const Lines& lines) {
  constexpr std::size_t kLineValues = kLineBytes / sizeof(float);
  const std::size_t into_line_bytes = reinterpret_cast<std::uintptr_t>(out) % kLineBytes;
  // Values that lie across lines.
  if (into_line_bytes % sizeof(float) != 0) return plain(in, out, count, shift, divisor);
  const std::size_t into_line = into_line_bytes / sizeof(float);
  const std::size_t to_line = (kLineValues - into_line) % kLineValues;
  const std::size_t head = to_line < count ? to_line : count;
  const std::size_t tail = (count - head) % kLineValues;
  const std::size_t end = count - tail;
  plain(in, out, head, shift, divisor);
  lines(in + head, out + head, end - head, shift, divisor);
  plain(in + end, out + end, tail, shift, divisor);
  _mm_sfence();  // before whoever is told that the values are there
}

}  // namespace
}  // namespace natagg
