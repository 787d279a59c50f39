// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Where AVX2's patterns come from: compress_vector.hpp. Only for avx2.cpp.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "proto/kernels/reference.hpp"

namespace natagg {
namespace {

struct Float32Pattern {
  static constexpr int kFraction = 23;
  static constexpr int kBias = 127;
  static constexpr bool kExact = true;
};

struct Float32Source : Float32Pattern {
  using Element = float;
  static constexpr Reference<float>* kReference = nat8::encode;
  static __m256i load(const float* in) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
  }
};

struct Float16Source : Float32Pattern {
  using Element = std::uint16_t;
  static constexpr Reference<std::uint16_t>* kReference = nat8::encode_float16;
  static __m256i load(const std::uint16_t* in) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    return _mm256_castps_si256(_mm256_cvtph_ps(halves));
  }
};

struct Bfloat16Source : Float32Pattern {
  using Element = std::uint16_t;
  static constexpr Reference<std::uint16_t>* kReference = nat8::encode_bfloat16;
  static __m256i load(const std::uint16_t* in) {
    const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(upper), 16);
  }
};

/// The upper halves of 8 float64, loaded such that they come out in order.
struct Float64Pattern {
  static constexpr int kFraction = 20;
  static constexpr int kBias = 1023;

  static __m256i load_pairs(const void* low, const void* high) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(low))),
        _mm_loadu_si128(static_cast<const __m128i*>(high)), 1);
  }
  template <int kHalves>
  static __m256i halves(__m256i a, __m256i b) {
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), kHalves));
  }
  static constexpr int kUpper = 0xDD;
  static constexpr int kLower = 0x88;
};

struct Float64Source : Float64Pattern {
  using Element = double;
  static constexpr Reference<double>* kReference = nat8::encode;
  static constexpr bool kExact = true;
  static __m256i load(const double* in) {
    const __m256i a = load_pairs(in, in + 4);
    const __m256i b = load_pairs(in + 2, in + 6);
    // What is cut off leaves a trace in the last bit, so that comparisons remain exact.
    const __m256i rest = _mm256_min_epu32(halves<kLower>(a, b), _mm256_set1_epi32(1));
    return _mm256_or_si256(halves<kUpper>(a, b), rest);
  }
};

/// Rounds towards zero with no exception, and without flushing denormals, while it lives. What
/// depends on it must be in a function of its own that is never inlined, because compilers move
/// arithmetic across changes of the mode.
class TruncatingMode {
 public:
  TruncatingMode() : saved_(_mm_getcsr()) { _mm_setcsr(_MM_MASK_MASK | _MM_ROUND_TOWARD_ZERO); }
  ~TruncatingMode() { _mm_setcsr(saved_); }
  TruncatingMode(const TruncatingMode&) = delete;
  TruncatingMode& operator=(const TruncatingMode&) = delete;

 private:
  unsigned saved_;
};

/// A sum converted to float64, in TruncatingMode. AVX2 does not convert 64-bit integers, but the
/// two halves of one become numbers when each gets the exponent that its lowest bit stands for;
/// the upper half is signed, so 2^31 is added to it and taken off again.
struct SumSource : Float64Pattern {
  using Element = std::int64_t;
  static constexpr Reference<std::int64_t>* kReference = reference_sum;
  static constexpr bool kExact = false;
  static __m256i load(const std::int64_t* in) {
    const __m256d a = convert(load_pairs(in, in + 4));
    const __m256d b = convert(load_pairs(in + 2, in + 6));
    return halves<kUpper>(_mm256_castpd_si256(a), _mm256_castpd_si256(b));
  }

 private:
  static __m256d convert(__m256i sum) {
    const __m256i two_52 = _mm256_set1_epi64x(0x4330'0000'0000'0000);
    const __m256i two_84_and_63 = _mm256_set1_epi64x(0x4530'0000'8000'0000);
    const __m256i low = _mm256_blend_epi32(sum, two_52, 0xAA);
    const __m256i high = _mm256_xor_si256(_mm256_srli_epi64(sum, 32), two_84_and_63);
    const __m256d offset = _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), offset),
                         _mm256_castsi256_pd(low));
  }
};

}  // namespace
}  // namespace natagg
