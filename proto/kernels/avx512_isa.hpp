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
  using Mask8 = __mmask64;           // of packed bytes
  static constexpr int kLanes = 16;  // of 32 bits

  static Vector broadcast32(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static Vector broadcast8(std::uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Vector broadcast64(std::uint64_t x) {
    return _mm512_set1_epi64(static_cast<long long>(x));
  }
  /// What to add to a counter for each 64-bit lane, so that interleaved blocks are in order.
  static Vector block_offsets64() { return _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0); }

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

  static Vector low_pairs64(Vector a, Vector b) { return _mm512_unpacklo_epi64(a, b); }
  static Vector high_pairs64(Vector a, Vector b) { return _mm512_unpackhi_epi64(a, b); }

  /// 16 of 32 16-bit numbers, zero-extended.
  static Vector widen_low16(Vector a) { return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(a)); }
  static Vector widen_high16(Vector a) {
    return _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(a, 1));
  }

  static Mask equal32(Vector a, Vector b) { return _mm512_cmpeq_epi32_mask(a, b); }
  static Mask less32(Vector a, Vector b) { return _mm512_cmplt_epi32_mask(a, b); }
  /// By the intrinsic: GCC 12 at -O1 with ThreadSanitizer may else leave bits above the mask.
  static std::uint32_t bits(Mask mask) { return _cvtmask16_u32(mask); }

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

  /// The 32-bit lanes as bytes, in an order that store_bytes() undoes. Signed saturation keeps
  /// signs.
  static Vector pack(const Vector (&x)[4]) {
    return _mm512_packs_epi16(_mm512_packs_epi32(x[0], x[1]), _mm512_packs_epi32(x[2], x[3]));
  }
  /// Whether every byte is from kLeast to kMost, signed.
  template <int kLeast, int kMost>
  static bool all_within8(Vector bytes) {
    const Vector above = _mm512_sub_epi8(bytes, _mm512_set1_epi8(kLeast));
    return _mm512_cmpgt_epu8_mask(above, _mm512_set1_epi8(kMost - kLeast)) == 0;
  }
  /// The same of the bytes that `exempt` does not have.
  template <int kLeast, int kMost>
  static bool all_within8(Vector bytes, Mask8 exempt) {
    const Vector above = _mm512_sub_epi8(bytes, _mm512_set1_epi8(kLeast));
    return _mm512_mask_cmpgt_epu8_mask(~exempt, above, _mm512_set1_epi8(kMost - kLeast)) == 0;
  }
  static Mask8 zeros8(Vector bytes) { return _mm512_testn_epi8_mask(bytes, bytes); }
  static Vector select8(Mask8 mask, Vector yes, Vector no) {
    return _mm512_mask_blend_epi8(mask, no, yes);
  }
  static std::uint64_t count8(Mask8 mask) {
    return static_cast<std::uint64_t>(__builtin_popcountll(mask));
  }

  /// 64 packed codes, each below 0x80 and complemented, with its pattern's sign.
  static void store_bytes(std::uint8_t* out, Vector not_codes, Vector patterns) {
    constexpr int kSelectSign = 0x8D;  // third operand set: second, else complement of the first
    const Vector bytes =
        _mm512_ternarylogic_epi32(not_codes, patterns, _mm512_set1_epi8(-0x80), kSelectSign);
    const Vector order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi32(order, bytes));
  }
};

}  // namespace
}  // namespace natagg
