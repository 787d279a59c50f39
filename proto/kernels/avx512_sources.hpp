// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Where AVX-512's patterns come from: compress_vector.hpp. Only for avx512.cpp.
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
  static __m512i load(const float* in) { return _mm512_loadu_si512(in); }
};

struct Float16Source : Float32Pattern {
  using Element = std::uint16_t;
  static constexpr Reference<std::uint16_t>* kReference = nat8::encode_float16;
  static __m512i load(const std::uint16_t* in) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    return _mm512_castps_si512(_mm512_cvt_roundph_ps(halves, _MM_FROUND_NO_EXC));
  }
};

struct Bfloat16Source : Float32Pattern {
  using Element = std::uint16_t;
  static constexpr Reference<std::uint16_t>* kReference = nat8::encode_bfloat16;
  static __m512i load(const std::uint16_t* in) {
    const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16);
  }
};

/// The upper halves of 16 float64.
struct Float64Pattern {
  static constexpr int kFraction = 20;
  static constexpr int kBias = 1023;
  static __m512i upper_halves(__m512i low, __m512i high) {
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    return _mm512_permutex2var_epi32(low, odd, high);
  }
};

struct Float64Source : Float64Pattern {
  using Element = double;
  static constexpr Reference<double>* kReference = nat8::encode;
  static constexpr bool kExact = true;
  static __m512i load(const double* in) {
    const __m512i low = _mm512_loadu_si512(in);
    const __m512i high = _mm512_loadu_si512(in + 8);
    // What is cut off leaves a trace in the last bit, so that comparisons remain exact.
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i rest = _mm512_permutex2var_epi32(low, even, high);
    return _mm512_or_si512(upper_halves(low, high), _mm512_min_epu32(rest, _mm512_set1_epi32(1)));
  }
};

/// A sum converted to float64 towards zero, whatever the rounding mode.
struct SumSource : Float64Pattern {
  using Element = std::int64_t;
  static constexpr Reference<std::int64_t>* kReference = reference_sum;
  static constexpr bool kExact = false;
  static __m512i load(const std::int64_t* in) {
    return upper_halves(convert(_mm512_loadu_si512(in)), convert(_mm512_loadu_si512(in + 8)));
  }

 private:
  static __m512i convert(__m512i sum) {
    return _mm512_castpd_si512(
        _mm512_cvt_roundepi64_pd(sum, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
  }
};

}  // namespace
}  // namespace natagg
