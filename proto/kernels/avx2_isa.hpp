// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// AVX2 as the vector kernels see it. Only for avx2.cpp, which is compiled for it.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace natagg {
namespace {

struct Avx2 {
  using Vector = __m256i;
  using Mask = __m256i;             // lanes of ones or zeros
  using Mask8 = __m256i;            // likewise, of packed bytes
  static constexpr int kLanes = 8;  // of 32 bits

  static Vector broadcast32(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static Vector broadcast8(std::uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Vector broadcast64(std::uint64_t x) {
    return _mm256_set1_epi64x(static_cast<long long>(x));
  }
  /// What to add to a counter for each 64-bit lane, so that interleaved blocks are in order.
  static Vector block_offsets64() { return _mm256_set_epi64x(3, 1, 2, 0); }

  static Vector and_(Vector a, Vector b) { return _mm256_and_si256(a, b); }
  static Vector or_(Vector a, Vector b) { return _mm256_or_si256(a, b); }
  static Vector xor3(Vector a, Vector b, Vector c) {
    return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
  }
  static Vector add32(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static Vector sub32(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  static Vector add64(Vector a, Vector b) { return _mm256_add_epi64(a, b); }
  template <int kBits>
  static Vector shift_left32(Vector a) {
    return _mm256_slli_epi32(a, kBits);
  }
  template <int kBits>
  static Vector shift_right32(Vector a) {
    return _mm256_srli_epi32(a, kBits);
  }
  template <int kBits>
  static Vector shift_right64(Vector a) {
    return _mm256_srli_epi64(a, kBits);
  }
  template <int kBits>
  static Vector shift_right_signed32(Vector a) {
    return _mm256_srai_epi32(a, kBits);
  }
  static Vector shift_right_each32(Vector a, Vector n) { return _mm256_srlv_epi32(a, n); }

  /// Product of the low halves of the 64-bit lanes.
  static Vector multiply64(Vector a, Vector b) { return _mm256_mul_epu32(a, b); }

  /// The low halves of the 64-bit lanes of `even` and `odd` in turn.
  static Vector interleave(Vector even, Vector odd) {
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
  }

  static Vector low_pairs64(Vector a, Vector b) { return _mm256_unpacklo_epi64(a, b); }
  static Vector high_pairs64(Vector a, Vector b) { return _mm256_unpackhi_epi64(a, b); }

  /// 8 of 16 16-bit numbers, zero-extended.
  static Vector widen_low16(Vector a) { return _mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)); }
  static Vector widen_high16(Vector a) {
    return _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1));
  }

  static Mask equal32(Vector a, Vector b) { return _mm256_cmpeq_epi32(a, b); }
  static Mask less32(Vector a, Vector b) { return _mm256_cmpgt_epi32(b, a); }
  /// Whether every lane has a bit in common with `wanted`.
  static bool all_meet32(const Vector (&x)[4], std::uint32_t wanted) {
    const Vector mask = broadcast32(wanted);
    const Vector least =
        min32(and_(x[0], mask), and_(x[1], mask), and_(x[2], mask), and_(x[3], mask));
    return bits(equal32(least, _mm256_setzero_si256())) == 0;
  }
  static Vector select(Mask mask, Vector yes, Vector no) {
    return _mm256_blendv_epi8(no, yes, mask);
  }
  static std::uint32_t bits(Mask mask) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
  }

  /// The 32-bit lanes as bytes, in an order that store_bytes() undoes. Signed saturation keeps
  /// signs.
  static Vector pack(const Vector (&x)[4]) {
    return _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
  }
  /// Whether every byte is from kLeast to kMost, signed.
  template <int kLeast, int kMost>
  static bool all_within8(Vector bytes) {
    const Vector above = _mm256_sub_epi8(bytes, _mm256_set1_epi8(kLeast));
    const Vector beyond = _mm256_subs_epu8(above, _mm256_set1_epi8(kMost - kLeast));
    return _mm256_testz_si256(beyond, beyond) != 0;
  }
  /// The same of the bytes that `exempt` does not have.
  template <int kLeast, int kMost>
  static bool all_within8(Vector bytes, Mask8 exempt) {
    const Vector above = _mm256_sub_epi8(bytes, _mm256_set1_epi8(kLeast));
    const Vector beyond = _mm256_subs_epu8(above, _mm256_set1_epi8(kMost - kLeast));
    return _mm256_testc_si256(exempt, beyond) != 0;
  }
  static Mask8 zeros8(Vector bytes) { return _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256()); }
  static Vector select8(Mask8 mask, Vector yes, Vector no) {
    return _mm256_blendv_epi8(no, yes, mask);
  }
  static std::uint64_t count8(Mask8 mask) {
    return static_cast<std::uint64_t>(
        __builtin_popcount(static_cast<std::uint32_t>(_mm256_movemask_epi8(mask))));
  }

  /// 32 packed codes, each below 0x80 and complemented, with its pattern's sign.
  static void store_bytes(std::uint8_t* out, Vector not_codes, Vector patterns) {
    const Vector code = _mm256_xor_si256(not_codes, _mm256_set1_epi8(-1));
    const Vector bytes = or_(code, and_(patterns, _mm256_set1_epi8(-0x80)));
    const Vector order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
    _mm256_storeu_si256(reinterpret_cast<Vector*>(out), _mm256_permutevar8x32_epi32(bytes, order));
  }

 private:
  static Vector min32(Vector a, Vector b, Vector c, Vector d) {  // unsigned
    return _mm256_min_epu32(_mm256_min_epu32(a, b), _mm256_min_epu32(c, d));
  }
};

}  // namespace
}  // namespace natagg
