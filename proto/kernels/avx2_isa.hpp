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
  static constexpr int kLanes = 8;  // of 32 bits

  static Vector broadcast32(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static Vector broadcast64(std::uint64_t x) {
    return _mm256_set1_epi64x(static_cast<long long>(x));
  }
  static Vector even_numbers64() { return _mm256_set_epi64x(6, 4, 2, 0); }

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
  static Vector shift_right_each32(Vector a, Vector n) { return _mm256_srlv_epi32(a, n); }

  /// Product of the low halves of the 64-bit lanes.
  static Vector multiply64(Vector a, Vector b) { return _mm256_mul_epu32(a, b); }

  /// The low halves of the 64-bit lanes of `even` and `odd` in turn.
  static Vector interleave(Vector even, Vector odd) {
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
  }

  static Mask equal32(Vector a, Vector b) { return _mm256_cmpeq_epi32(a, b); }
  static Mask less32(Vector a, Vector b) { return _mm256_cmpgt_epi32(b, a); }
  static Mask at_least32(Vector a, std::uint32_t limit) {  // unsigned
    return _mm256_cmpeq_epi32(_mm256_max_epu32(a, broadcast32(limit)), a);
  }
  static Vector select(Mask mask, Vector yes, Vector no) {
    return _mm256_blendv_epi8(no, yes, mask);
  }
  static std::uint32_t bits(Mask mask) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
  }
  static bool any(const Mask (&masks)[4]) {
    const Mask all = or_(or_(masks[0], masks[1]), or_(masks[2], masks[3]));
    return _mm256_testz_si256(all, all) == 0;
  }

  /// 32 bytes: each code, below 0x80, with its pattern's sign.
  static void store_bytes(std::uint8_t* out, const Vector (&codes)[4],
                          const Vector (&patterns)[4]) {
    const Vector code = _mm256_packus_epi16(_mm256_packus_epi32(codes[0], codes[1]),
                                            _mm256_packus_epi32(codes[2], codes[3]));
    // Signed saturation keeps the sign.
    const Vector sign = _mm256_packs_epi16(_mm256_packs_epi32(patterns[0], patterns[1]),
                                           _mm256_packs_epi32(patterns[2], patterns[3]));
    const Vector bytes = or_(code, and_(sign, _mm256_set1_epi8(-0x80)));
    const Vector order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
    _mm256_storeu_si256(reinterpret_cast<Vector*>(out), _mm256_permutevar8x32_epi32(bytes, order));
  }
};

struct Float32Source256 {
  using Element = float;
  static constexpr int kFraction = 23;
  static constexpr int kBias = 127;
  static constexpr bool kExact = true;
  static __m256i load(const float* in) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
  }
};

/// The upper half of a sum as float64. AVX2 does not convert 64-bit integers, but the two halves
/// of one become numbers by giving each the exponent that its lowest bit stands for.
struct SumSource256 {
  using Element = std::int64_t;
  static constexpr int kFraction = 20;
  static constexpr int kBias = 1023;
  static constexpr bool kExact = false;

  static __m256i load(const std::int64_t* in) {
    // Such that the upper halves of both come out in order.
    const __m256i a = load_pairs(in, in + 4);
    const __m256i b = load_pairs(in + 2, in + 6);
    const __m256i sign = _mm256_and_si256(upper_halves(a, b), _mm256_set1_epi32(INT32_MIN));
    return _mm256_or_si256(upper_halves(magnitude_bits(a), magnitude_bits(b)), sign);
  }

 private:
  static __m256i load_pairs(const std::int64_t* low, const std::int64_t* high) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)), 1);
  }

  static __m256i upper_halves(__m256i a, __m256i b) {
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD));
  }

  /// |sum| as float64, cut to 52 bits first so that it converts exactly in every rounding mode.
  static __m256i magnitude_bits(__m256i sum) {
    const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), sum);
    const __m256i magnitude = _mm256_sub_epi64(_mm256_xor_si256(sum, negative), negative);
    // A magnitude of 2^52 or more loses its 12 lowest bits.
    const __m256i large =
        _mm256_cmpgt_epi64(_mm256_srli_epi64(magnitude, 52), _mm256_setzero_si256());
    const __m256i kept = _mm256_andnot_si256(_mm256_srli_epi64(large, 52), magnitude);
    const __m256i two_52 = _mm256_set1_epi64x(0x4330'0000'0000'0000);
    const __m256i two_84 = _mm256_set1_epi64x(0x4530'0000'0000'0000);
    const __m256d low = _mm256_castsi256_pd(_mm256_blend_epi32(kept, two_52, 0xAA));
    const __m256d high = _mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64(kept, 32), two_84));
    const __m256d offset = _mm256_set1_pd(0x1p84 + 0x1p52);
    return _mm256_castpd_si256(_mm256_add_pd(_mm256_sub_pd(high, offset), low));
  }
};

}  // namespace
}  // namespace natagg
