// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/kernels/avx512_isa.hpp"
#include "proto/kernels/avx512_sources.hpp"
#include "proto/kernels/compress_vector.hpp"
#include "proto/kernels/implementations.hpp"
#include "proto/kernels/streaming.hpp"

namespace natagg {
namespace {

template <typename Source>
void encode(const typename Source::Element* in, std::uint8_t* out, std::size_t count,
            std::uint64_t first, const proto::RoundingKey& key, int shift, nat8::Tally& tally) {
  compress<Avx512, Source>(in, out, count, first, key, shift, tally);
}

void recompress(const std::int64_t* slot, std::uint8_t* out, std::size_t count, std::uint64_t first,
                const proto::RoundingKey& key, nat8::Tally& tally) {
  // A sum counts in units of code 0, as if the window began at 2^0.
  compress<Avx512, SumSource>(slot, out, count, first, key, -nat8::kMinExponent, tally);
}

__mmask16 first_lanes16(std::size_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1U << count) - 1);
}

__mmask8 first_lanes8(std::size_t count) {
  return static_cast<__mmask8>(count >= 8 ? 0xFF : (1U << count) - 1);
}

constexpr int kSelect = 0xD8;  // ternary logic: third operand set: second, else first

/// The float32 bits of 16 bytes, given code 0's.
[[gnu::always_inline]] inline __m512i float32_bits(__m512i byte, std::uint32_t code0) {
  const __m512i flag = _mm512_set1_epi32(nat8::kFlag);
  const __m512i exponent =
      _mm512_and_si512(_mm512_slli_epi32(byte, 23), _mm512_set1_epi32(0x3F << 23));
  const __m512i magnitude = _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(code0)), exponent);
  const __m512i value = _mm512_ternarylogic_epi32(magnitude, _mm512_slli_epi32(byte, 24),
                                                  _mm512_set1_epi32(INT32_MIN), kSelect);
  const __mmask16 plain = _mm512_testn_epi32_mask(byte, flag);
  const __m512i finite = _mm512_maskz_mov_epi32(plain, value);
  const __mmask16 special =
      _mm512_mask_cmpneq_epi32_mask(static_cast<__mmask16>(~plain), byte, flag);
  if (special == 0) [[likely]]
    return finite;
  const __mmask16 infinite = _mm512_mask_test_epi32_mask(special, byte, _mm512_set1_epi32(1));
  const __m512i infinity = _mm512_or_si512(_mm512_set1_epi32(0x7F80'0000),
                                           _mm512_slli_epi32(_mm512_srli_epi32(byte, 7), 31));
  return _mm512_mask_mov_epi32(
      _mm512_mask_mov_epi32(finite, special, _mm512_set1_epi32(0x7FC0'0000)), infinite, infinity);
}

/// Calls store(i, float32 bits, lanes) for each vector of values.
template <typename Store>
[[gnu::always_inline]] inline void decode_float32(const std::uint8_t* in, std::size_t count,
                                                  std::uint32_t code0, const Store& store) {
  for (std::size_t i = 0; i < count; i += 16) {
    const __mmask16 lanes = first_lanes16(count - i);
    const __m512i byte = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, in + i));
    store(i, float32_bits(byte, code0), lanes);
  }
}

void decode_f32(const std::uint8_t* in, float* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  if (!quotients_are_normal(shift, divisor)) {
    kScalarKernels.decode_f32(in, out, count, shift, divisor);
    return;
  }
  const std::uint32_t code0 = code0_bits(shift, divisor);
  decode_float32(in, count, code0, [out](std::size_t i, __m512i bits, __mmask16 lanes) {
    _mm512_mask_storeu_epi32(out + i, lanes, bits);
  });
}

void stream_f32(const std::uint8_t* in, float* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  if (!quotients_are_normal(shift, divisor)) return decode_f32(in, out, count, shift, divisor);
  const std::uint32_t code0 = code0_bits(shift, divisor);
  const auto lines = [code0](const std::uint8_t* bytes, float* to, std::size_t n, int,
                             std::uint32_t) {
    decode_float32(bytes, n, code0, [to](std::size_t i, __m512i bits, __mmask16) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), bits);
    });
  };
  decode_by_lines(in, out, count, shift, divisor, decode_f32, lines);
}

void decode_f16(const std::uint8_t* in, std::uint16_t* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  if (!quotients_are_normal(shift, divisor)) {
    kScalarKernels.decode_f16(in, out, count, shift, divisor);
    return;
  }
  const std::uint32_t code0 = odd_quotient(shift, divisor);
  decode_float32(in, count, code0, [out](std::size_t i, __m512i bits, __mmask16 lanes) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const __m256i halves = _mm512_cvt_roundps_ph(_mm512_castsi512_ps(bits), kNearest);
    _mm256_mask_storeu_epi16(out + i, lanes, halves);
  });
}

void decode_bf16(const std::uint8_t* in, std::uint16_t* out, std::size_t count, int shift,
                 std::uint32_t divisor) {
  if (!quotients_are_normal(shift, divisor)) {
    kScalarKernels.decode_bf16(in, out, count, shift, divisor);
    return;
  }
  const std::uint32_t code0 = std::uint32_t{nat8::decode_bfloat16(0, shift, divisor)} << 16;
  decode_float32(in, count, code0, [out](std::size_t i, __m512i bits, __mmask16 lanes) {
    _mm256_mask_storeu_epi16(out + i, lanes, _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16)));
  });
}

void decode_f64(const std::uint8_t* in, double* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  const double smallest = nat8::decode_double(0, shift, divisor);  // always normal
  std::uint64_t bits;
  __builtin_memcpy(&bits, &smallest, sizeof(bits));
  const __m512i code0 = _mm512_set1_epi64(static_cast<long long>(bits));
  const __m512i flag = _mm512_set1_epi64(nat8::kFlag);
  for (std::size_t i = 0; i < count; i += 8) {
    const __mmask8 lanes = first_lanes8(count - i);
    const __m512i byte = _mm512_cvtepu8_epi64(_mm_maskz_loadu_epi8(lanes, in + i));
    const __m512i exponent =
        _mm512_and_si512(_mm512_slli_epi64(byte, 52), _mm512_set1_epi64(0x3FLL << 52));
    const __m512i value =
        _mm512_ternarylogic_epi64(_mm512_add_epi64(code0, exponent), _mm512_slli_epi64(byte, 56),
                                  _mm512_set1_epi64(INT64_MIN), kSelect);
    const __mmask8 plain = _mm512_testn_epi64_mask(byte, flag);
    const __mmask8 special =
        _mm512_mask_cmpneq_epi64_mask(static_cast<__mmask8>(~plain & lanes), byte, flag);
    if (special != 0) [[unlikely]] {
      kScalarKernels.decode_f64(in + i, out + i, count - i < 8 ? count - i : 8, shift, divisor);
    } else {
      _mm512_mask_storeu_epi64(out + i, lanes, _mm512_maskz_mov_epi64(plain, value));
    }
  }
}

Scan scan(const std::uint8_t* in, std::size_t count) {
  const __m512i code_and_flag = _mm512_set1_epi8(0x7F);
  const __m512i zero = _mm512_set1_epi8(nat8::kZero);
  __m512i largest = _mm512_setzero_si512();
  Scan result;
  for (std::size_t i = 0; i < count; i += 64) {
    const std::size_t left = count - i;
    const __mmask64 lanes = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    const __m512i byte = _mm512_mask_loadu_epi8(zero, lanes, in + i);
    const __m512i code = _mm512_and_si512(byte, code_and_flag);
    const __mmask64 plain = _mm512_cmple_epu8_mask(code, _mm512_set1_epi8(nat8::kMaxCode));
    largest = _mm512_mask_max_epu8(largest, plain, largest, code);
    if (_mm512_mask_cmpneq_epi8_mask(~plain, byte, zero) != 0) [[unlikely]] {
      const Scan chunk = kScalarKernels.scan(in + i, left < 64 ? left : 64);
      result.any_special |= chunk.any_special;
      result.malformed |= chunk.malformed;
      if (chunk.largest_code > result.largest_code) result.largest_code = chunk.largest_code;
    }
  }
  const __m256i half =
      _mm256_max_epu8(_mm512_castsi512_si256(largest), _mm512_extracti64x4_epi64(largest, 1));
  alignas(32) std::uint8_t bytes[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(bytes), half);
  for (const std::uint8_t byte : bytes) {
    if (byte > result.largest_code) result.largest_code = byte;
  }
  return result;
}

/// The upper 16 bits of the float64 for each of 32 valid bytes, in units of code 0: sign, 11 bits
/// of exponent, 4 of fraction; 0 for a set flag.
[[gnu::always_inline]] inline __m512i upper_float64(__m256i bytes) {
  const __m512i byte = _mm512_cvtepi8_epi16(bytes);
  const __mmask32 plain = _mm512_testn_epi16_mask(byte, _mm512_set1_epi16(nat8::kFlag));
  const __m512i sign_and_code =
      _mm512_and_si512(_mm512_slli_epi16(byte, 4), _mm512_set1_epi16(-0x8000 | 0x3F << 4));
  return _mm512_maskz_add_epi16(plain, sign_and_code, _mm512_set1_epi16(1023 << 4));
}

/// The integers of values j to j + 7 of `number`, as upper_float64 gives it: exact.
[[gnu::always_inline]] inline __m512i addends(__m512i number, int j) {
  const __m512i place =
      _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(j));
  const __m512i widened =
      _mm512_maskz_permutexvar_epi16(0x88888888, _mm512_slli_epi64(place, 48), number);
  return _mm512_cvttpd_epi64(_mm512_castsi512_pd(widened));
}

/// Calls use(i, addends, lanes) for each vector of slots.
template <typename Use>
[[gnu::always_inline]] inline void for_addends(const std::uint8_t* in, std::size_t count,
                                               const Use& use) {
  std::size_t i = 0;
  for (; count - i >= 32; i += 32) {
    const __m512i number =
        upper_float64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)));
#pragma GCC unroll 4
    for (int j = 0; j < 32; j += 8) {
      use(i + static_cast<std::size_t>(j), addends(number, j), __mmask8{0xFF});
    }
  }
  const std::size_t left = count - i;
  const __m512i number = upper_float64(_mm256_maskz_loadu_epi8((__mmask32{1} << left) - 1, in + i));
  for (std::size_t j = 0; j < left; j += 8) {
    use(i + j, addends(number, static_cast<int>(j)), first_lanes8(left - j));
  }
}

void store(const std::uint8_t* in, std::int64_t* slot, std::size_t count) {
  for_addends(in, count, [slot](std::size_t i, __m512i addend, __mmask8 lanes) {
    _mm512_mask_storeu_epi64(slot + i, lanes, addend);
  });
}

void accumulate(const std::uint8_t* in, std::int64_t* slot, std::size_t count) {
  for_addends(in, count, [slot](std::size_t i, __m512i addend, __mmask8 lanes) {
    const __m512i sum = _mm512_maskz_loadu_epi64(lanes, slot + i);
    _mm512_mask_storeu_epi64(slot + i, lanes, _mm512_add_epi64(sum, addend));
  });
}

void accumulate_wide(const std::uint8_t* in, std::int64_t* slot, std::int16_t* carry,
                     std::size_t count) {
  for_addends(in, count, [slot, carry](std::size_t i, __m512i addend, __mmask8 lanes) {
    const __m512i before = _mm512_maskz_loadu_epi64(lanes, slot + i);
    const __m512i after = _mm512_add_epi64(before, addend);
    const __mmask8 wrapped = _mm512_cmplt_epu64_mask(after, before);
    const __mmask8 negative = _mm512_movepi64_mask(addend);
    const __m128i one = _mm_set1_epi16(1);
    __m128i high = _mm_maskz_loadu_epi16(lanes, carry + i);
    high = _mm_mask_add_epi16(high, wrapped, high, one);
    high = _mm_mask_sub_epi16(high, negative, high, one);
    _mm512_mask_storeu_epi64(slot + i, lanes, after);
    _mm_mask_storeu_epi16(carry + i, lanes, high);
  });
}

}  // namespace

constinit const Kernels kAvx512Kernels = {
    .name = "avx512",
    .supported = avx512_supported,
    .encode_f32 = encode<Float32Source>,
    .encode_f64 = encode<Float64Source>,
    .encode_f16 = encode<Float16Source>,
    .encode_bf16 = encode<Bfloat16Source>,
    .decode_f32 = decode_f32,
    .decode_f64 = decode_f64,
    .decode_f16 = decode_f16,
    .decode_bf16 = decode_bf16,
    .stream_f32 = stream_f32,
    .scan = scan,
    .store = store,
    .accumulate = accumulate,
    .accumulate_wide = accumulate_wide,
    .recompress = recompress,
};

}  // namespace natagg
