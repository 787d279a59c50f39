// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The vector kernels behind natagg's numbers, chosen at run time. Every implementation gives the
// same bytes as the scalar reference (nat8.hpp) for the same arguments, at every length and
// alignment, and independent of the floating-point environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "proto/nat8.hpp"
#include "proto/rounding.hpp"

namespace natagg {

/// One pass over a packet's bytes.
struct Scan {
  std::uint8_t largest_code = 0;  // of the bytes whose flag is clear; 0 when there is none
  bool any_special = false;       // Inf or NaN
  bool malformed = false;         // a byte that is not nat8
};

/// `first` is always the index, in the operation, of the call's first element; with `key` it
/// fixes the randomness. Input and output never overlap.
struct Kernels {
  std::string_view name;
  bool (*supported)();

  /// out[i] = the byte of in[i].
  template <typename Element>
  using Encode = void(const Element* in, std::uint8_t* out, std::size_t count, std::uint64_t first,
                      const proto::RoundingKey& key, int shift, nat8::Tally& tally);
  Encode<float>* encode_f32;
  Encode<double>* encode_f64;
  Encode<std::uint16_t>* encode_f16;   // the bits of IEEE 754 binary16
  Encode<std::uint16_t>* encode_bf16;  // the bits of bfloat16

  /// out[i] = in[i]'s value / divisor, rounded to nearest even. Bytes must be valid.
  template <typename Element>
  using Decode = void(const std::uint8_t* in, Element* out, std::size_t count, int shift,
                      std::uint32_t divisor);
  Decode<float>* decode_f32;
  Decode<double>* decode_f64;
  Decode<std::uint16_t>* decode_f16;
  Decode<std::uint16_t>* decode_bf16;

  /// The same as decode_f32, by stores that pass by the caches where the CPU has them: faster where
  /// `out` is not cached, and not read again before it would have left the caches.
  Decode<float>* stream_f32;

  Scan (*scan)(const std::uint8_t* in, std::size_t count);

  /// slot[i] = in[i] in units of the smallest code; specials count as 0. Bytes must be valid.
  void (*store)(const std::uint8_t* in, std::int64_t* slot, std::size_t count);

  /// slot[i] += in[i]. The caller ensures that no sum can leave int64.
  void (*accumulate)(const std::uint8_t* in, std::int64_t* slot, std::size_t count);

  /// 80-bit sums for slots that could leave int64: carry[i] * 2^64 + slot[i] (taken as unsigned)
  /// += in[i].
  void (*accumulate_wide)(const std::uint8_t* in, std::int64_t* slot, std::int16_t* carry,
                          std::size_t count);

  /// out[i] = the byte of the sum slot[i].
  void (*recompress)(const std::int64_t* slot, std::uint8_t* out, std::size_t count,
                     std::uint64_t first, const proto::RoundingKey& key, nat8::Tally& tally);
};

/// All implementations in this build, best first; some may not be supported() here.
[[nodiscard]] std::span<const Kernels> all_kernels();

/// The implementation called `name` ("scalar", "avx2", "avx512"), or nullptr when this build or
/// this CPU has none.
[[nodiscard]] const Kernels* find_kernels(std::string_view name);

/// The implementation named by the environment variable NATAGG_KERNELS when that is usable here,
/// else the best that is supported. Chosen once; thread-safe.
[[nodiscard]] const Kernels& default_kernels();

}  // namespace natagg
