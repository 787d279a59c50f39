// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// AVX-512 as the vector kernels see it. Only for avx512.cpp, which is compiled for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace natagg {
namespace {

struct Avx512 {
  using Vector = __m512i;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;  // of 32 bits

  static Vector broadcast32(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static Vector broadcast64(std::uint64_t x) {
    return _mm512_set1_epi64(static_cast<long long>(x));
  }
  static Vector even_numbers64() { return _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0); }

  static Vector and_(Vector a, Vector b) { return _mm512_and_si512(a, b); }
  static Vector or_(Vector a, Vector b) { return _mm512_or_si512(a, b); }
  static Vector xor3(Vector a, Vector b, Vector c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
  }
  static Vector add32(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static Vector sub32(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
  static Vector add64(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
  template <int kBits>
  static Vector shift_left32(Vector a) {
    return _mm512_slli_epi32(a, kBits);
  }
  template <int kBits>
  static Vector shift_right32(Vector a) {
    return _mm512_srli_epi32(a, kBits);
  }
  template <int kBits>
  static Vector shift_right64(Vector a) {
    return _mm512_srli_epi64(a, kBits);
  }
  template <int kBits>
  static Vector shift_right_signed32(Vector a) {
    return _mm512_srai_epi32(a, kBits);
  }
  static Vector shift_right_each32(Vector a, Vector n) { return _mm512_srlv_epi32(a, n); }

  /// Product of the low halves of the 64-bit lanes.
  static Vector multiply64(Vector a, Vector b) { return _mm512_mul_epu32(a, b); }

  /// The low halves of the 64-bit lanes of `even` and `odd` in turn.
  static Vector interleave(Vector even, Vector odd) {
    return _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
  }

  static Mask equal32(Vector a, Vector b) { return _mm512_cmpeq_epi32_mask(a, b); }
  static Mask less32(Vector a, Vector b) { return _mm512_cmplt_epi32_mask(a, b); }
  /// By the intrinsic: GCC 12 at -O1 with ThreadSanitizer may else leave bits above the mask.
  static std::uint32_t bits(Mask mask) { return _cvtmask16_u32(mask); }

  /// Whether every lane is above `limit`, unsigned.
  static bool all_above32(const Vector (&x)[4], std::uint32_t limit) {
    const Vector limits = broadcast32(limit);
    Mask mask = _mm512_cmpgt_epu32_mask(x[0], limits);
    for (int i = 1; i < 4; ++i) mask = _mm512_mask_cmpgt_epu32_mask(mask, x[i], limits);
    return bits(mask) == 0xFFFF;
  }
  /// Whether every lane has a bit in common with `any_of`.
  static bool all_meet32(const Vector (&x)[4], std::uint32_t any_of) {
    const Vector wanted = broadcast32(any_of);
    Mask mask = _mm512_test_epi32_mask(x[0], wanted);
    for (int i = 1; i < 4; ++i) mask = _mm512_mask_test_epi32_mask(mask, x[i], wanted);
    return bits(mask) == 0xFFFF;
  }
  static Vector select(Mask mask, Vector yes, Vector no) {
    return _mm512_mask_blend_epi32(mask, no, yes);
  }

  /// 64 bytes: each code, below 0x80 and complemented, with its pattern's sign.
  static void store_bytes(std::uint8_t* out, const Vector (&not_codes)[4],
                          const Vector (&patterns)[4]) {
    const Vector not_code = _mm512_packs_epi16(_mm512_packs_epi32(not_codes[0], not_codes[1]),
                                               _mm512_packs_epi32(not_codes[2], not_codes[3]));
    // Signed saturation keeps the sign.
    const Vector sign = _mm512_packs_epi16(_mm512_packs_epi32(patterns[0], patterns[1]),
                                           _mm512_packs_epi32(patterns[2], patterns[3]));
    constexpr int kSelectSign = 0x8D;  // third operand set: second, else complement of the first
    const Vector bytes =
        _mm512_ternarylogic_epi32(not_code, sign, _mm512_set1_epi8(-0x80), kSelectSign);
    const Vector order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi32(order, bytes));
  }
};

}  // namespace
}  // namespace natagg
