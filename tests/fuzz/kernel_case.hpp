// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One kernel call, made from any bytes: which kernel, on what, where in memory, under which key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/rounding.hpp"

namespace natagg::fuzz {

enum class Target : std::uint8_t {
  kEncodeF32,
  kEncodeF64,
  kEncodeF16,
  kEncodeBf16,
  kRecompress,
  kDecodeF32,
  kDecodeF64,
  kDecodeF16,
  kDecodeBf16,
  kStreamF32,
  kScan,
  kStore,
  kAccumulate,
  kAccumulateWide,
};
inline constexpr std::size_t kTargets = 14;

/// More than two of the 128-value groups that the widest kernel takes at a time.
inline constexpr std::size_t kMaxCount = 320;

/// Bytes of a case before its data; missing ones are taken as 0.
inline constexpr std::size_t kHeaderBytes = 26;

struct Case {
  Target target = Target::kEncodeF32;
  std::size_t count = 0;
  std::size_t in_offset = 0;   // elements from a 64-byte boundary
  std::size_t out_offset = 0;  // likewise
  int shift = 0;
  std::uint32_t divisor = 1;
  std::uint64_t first = 0;
  proto::RoundingKey key;

  /// Each element's bits: of an encoder's input, a sum, or what a slot holds before it is added to.
  std::array<std::uint64_t, kMaxCount> element;
  std::array<std::uint8_t, kMaxCount> byte;  // valid nat8, but any for kScan
  std::array<std::int16_t, kMaxCount> carry;
};

/// Shapes half of the elements so that they are dense in edges: the ends of the window, denormals,
/// specials, and values that the lower 48 bits of R decide.
void parse(std::span<const std::uint8_t> input, Case& result);

}  // namespace natagg::fuzz
