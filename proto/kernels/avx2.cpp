// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/kernels/avx2_isa.hpp"
#include "proto/kernels/avx2_sources.hpp"
#include "proto/kernels/compress_vector.hpp"
#include "proto/kernels/implementations.hpp"
#include "proto/kernels/streaming.hpp"

namespace natagg {
namespace {

__m256i load256(const void* in) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(in));
}
void store256(void* out, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i*>(out), x);
}

/// 8 bytes in the low part of a vector.
__m128i load64(const void* in) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(in));
}

template <typename Source>
void encode(const typename Source::Element* in, std::uint8_t* out, std::size_t count,
            std::uint64_t first, const proto::RoundingKey& key, int shift, nat8::Tally& tally) {
  compress<Avx2, Source>(in, out, count, first, key, shift, tally);
}

/// In TruncatingMode.
[[gnu::noinline]] void recompress_truncating(const std::int64_t* slot, std::uint8_t* out,
                                             std::size_t count, std::uint64_t first,
                                             const proto::RoundingKey& key, nat8::Tally& tally) {
  // A sum counts in units of code 0, as if the window began at 2^0.
  compress<Avx2, SumSource>(slot, out, count, first, key, -nat8::kMinExponent, tally);
}

void recompress(const std::int64_t* slot, std::uint8_t* out, std::size_t count, std::uint64_t first,
                const proto::RoundingKey& key, nat8::Tally& tally) {
  const TruncatingMode mode;
  recompress_truncating(slot, out, count, first, key, tally);
}

/// Calls store(out + i, float32 bits) for vectors of 8 values, given code 0's bits; leaves
/// specials, the tail, and all when `normal` is false, to `scalar`.
template <typename Element, typename Store>
[[gnu::always_inline]] inline void decode(const std::uint8_t* in, Element* out, std::size_t count,
                                          int shift, std::uint32_t divisor, std::uint32_t code0,
                                          Kernels::Decode<Element>* scalar, const Store& store) {
  const bool normal = quotients_are_normal(shift, divisor);
  const __m256i base = _mm256_set1_epi32(static_cast<int>(code0));
  const __m256i flag = _mm256_set1_epi32(nat8::kFlag);
  std::size_t i = 0;
  for (; normal && count - i >= 8; i += 8) {
    const __m256i byte = _mm256_cvtepu8_epi32(load64(in + i));
    const __m256i flagged = _mm256_cmpeq_epi32(_mm256_and_si256(byte, flag), flag);
    const __m256i special = _mm256_andnot_si256(_mm256_cmpeq_epi32(byte, flag), flagged);
    if (_mm256_testz_si256(special, special) == 0) [[unlikely]] {
      scalar(in + i, out + i, 8, shift, divisor);
      continue;
    }
    const __m256i exponent =
        _mm256_and_si256(_mm256_slli_epi32(byte, 23), _mm256_set1_epi32(0x3F << 23));
    const __m256i sign =
        _mm256_and_si256(_mm256_slli_epi32(byte, 24), _mm256_set1_epi32(INT32_MIN));
    const __m256i value = _mm256_or_si256(_mm256_add_epi32(base, exponent), sign);
    store(out + i, _mm256_andnot_si256(flagged, value));
  }
  if (i < count) scalar(in + i, out + i, count - i, shift, divisor);
}

void decode_f32(const std::uint8_t* in, float* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  const std::uint32_t code0 = code0_bits(shift, divisor);
  decode(in, out, count, shift, divisor, code0, kScalarKernels.decode_f32,
         [](float* to, __m256i bits) { store256(to, bits); });
}

void stream_f32(const std::uint8_t* in, float* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  const std::uint32_t code0 = code0_bits(shift, divisor);
  const auto lines = [code0](const std::uint8_t* bytes, float* to, std::size_t n, int s,
                             std::uint32_t d) {
    decode(bytes, to, n, s, d, code0, kScalarKernels.decode_f32, [](float* at, __m256i bits) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(at), bits);
    });
  };
  decode_by_lines(in, out, count, shift, divisor, decode_f32, lines);
}

void decode_f16(const std::uint8_t* in, std::uint16_t* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  decode(in, out, count, shift, divisor, odd_quotient(shift, divisor), kScalarKernels.decode_f16,
         [](std::uint16_t* to, __m256i bits) {
           _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                            _mm256_cvtps_ph(_mm256_castsi256_ps(bits), _MM_FROUND_TO_NEAREST_INT));
         });
}

void decode_bf16(const std::uint8_t* in, std::uint16_t* out, std::size_t count, int shift,
                 std::uint32_t divisor) {
  const std::uint32_t code0 = std::uint32_t{nat8::decode_bfloat16(0, shift, divisor)} << 16;
  decode(in, out, count, shift, divisor, code0, kScalarKernels.decode_bf16,
         [](std::uint16_t* to, __m256i bits) {
           const __m256i upper = _mm256_srli_epi32(bits, 16);
           _mm_storeu_si128(
               reinterpret_cast<__m128i*>(to),
               _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
         });
}

void decode_f64(const std::uint8_t* in, double* out, std::size_t count, int shift,
                std::uint32_t divisor) {
  const double smallest = nat8::decode_double(0, shift, divisor);  // always normal
  std::uint64_t bits;
  __builtin_memcpy(&bits, &smallest, sizeof(bits));
  const __m256i base = _mm256_set1_epi64x(static_cast<long long>(bits));
  const __m256i flag = _mm256_set1_epi64x(nat8::kFlag);
  std::size_t i = 0;
  for (; count - i >= 4; i += 4) {
    const __m256i byte = _mm256_cvtepu8_epi64(_mm_loadu_si32(in + i));
    const __m256i flagged = _mm256_cmpeq_epi64(_mm256_and_si256(byte, flag), flag);
    const __m256i special = _mm256_andnot_si256(_mm256_cmpeq_epi64(byte, flag), flagged);
    if (_mm256_testz_si256(special, special) == 0) [[unlikely]] {
      kScalarKernels.decode_f64(in + i, out + i, 4, shift, divisor);
      continue;
    }
    const __m256i exponent =
        _mm256_and_si256(_mm256_slli_epi64(byte, 52), _mm256_set1_epi64x(0x3FLL << 52));
    const __m256i sign =
        _mm256_and_si256(_mm256_slli_epi64(byte, 56), _mm256_set1_epi64x(INT64_MIN));
    const __m256i value = _mm256_or_si256(_mm256_add_epi64(base, exponent), sign);
    store256(out + i, _mm256_andnot_si256(flagged, value));
  }
  if (i < count) kScalarKernels.decode_f64(in + i, out + i, count - i, shift, divisor);
}

Scan scan(const std::uint8_t* in, std::size_t count) {
  const __m256i code_and_flag = _mm256_set1_epi8(0x7F);
  const __m256i zero = _mm256_set1_epi8(nat8::kZero);
  __m256i largest = _mm256_setzero_si256();
  Scan result;
  const auto add = [&result](const Scan& chunk) {
    result.any_special |= chunk.any_special;
    result.malformed |= chunk.malformed;
    if (chunk.largest_code > result.largest_code) result.largest_code = chunk.largest_code;
  };
  std::size_t i = 0;
  for (; count - i >= 32; i += 32) {
    const __m256i byte = load256(in + i);
    const __m256i code = _mm256_and_si256(byte, code_and_flag);
    const __m256i beyond = _mm256_cmpgt_epi8(code, _mm256_set1_epi8(nat8::kMaxCode));
    largest = _mm256_max_epu8(largest, _mm256_andnot_si256(beyond, code));
    if (_mm256_testc_si256(_mm256_cmpeq_epi8(byte, zero), beyond) == 0) [[unlikely]] {
      add(kScalarKernels.scan(in + i, 32));
    }
  }
  if (i < count) add(kScalarKernels.scan(in + i, count - i));
  alignas(32) std::uint8_t bytes[32];
  store256(bytes, largest);
  for (const std::uint8_t byte : bytes) {
    if (byte > result.largest_code) result.largest_code = byte;
  }
  return result;
}

/// Calls use(i, addends) for each vector of slots and returns how many were covered.
template <typename Use>
[[gnu::always_inline]] inline std::size_t for_addends(const std::uint8_t* in, std::size_t count,
                                                      const Use& use) {
  std::size_t i = 0;
  for (; count - i >= 16; i += 16) {
    // Signs and shift counts are split while they are bytes; shuffles then widen four at a time.
    // A set flag makes the count 64 or more, which shifts the one out.
    const __m256i bytes =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
    const __m256i counts = _mm256_and_si256(bytes, _mm256_set1_epi8(0x7F));
    const __m256i negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes);
#pragma GCC unroll 4
    for (int j = 0; j < 16; j += 4) {
      const __m256i repeated = _mm256_add_epi8(
          _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0),
          _mm256_set1_epi8(static_cast<char>(j)));
      const __m256i zeros_above = _mm256_set1_epi64x(static_cast<long long>(0x8080808080808000));
      const __m256i count64 = _mm256_shuffle_epi8(counts, _mm256_or_si256(repeated, zeros_above));
      const __m256i one =
          _mm256_or_si256(_mm256_shuffle_epi8(negative, repeated), _mm256_set1_epi64x(1));
      use(i + static_cast<std::size_t>(j), _mm256_sllv_epi64(one, count64));
    }
  }
  return i;
}

void store(const std::uint8_t* in, std::int64_t* slot, std::size_t count) {
  const std::size_t done =
      for_addends(in, count, [slot](std::size_t i, __m256i addend) { store256(slot + i, addend); });
  kScalarKernels.store(in + done, slot + done, count - done);
}

void accumulate(const std::uint8_t* in, std::int64_t* slot, std::size_t count) {
  const std::size_t done = for_addends(in, count, [slot](std::size_t i, __m256i addend) {
    store256(slot + i, _mm256_add_epi64(load256(slot + i), addend));
  });
  kScalarKernels.accumulate(in + done, slot + done, count - done);
}

/// Rare, and 16-bit carries beside 64-bit lanes gain little from vectors this short.
void accumulate_wide(const std::uint8_t* in, std::int64_t* slot, std::int16_t* carry,
                     std::size_t count) {
  kScalarKernels.accumulate_wide(in, slot, carry, count);
}

}  // namespace

constinit const Kernels kAvx2Kernels = {
    .name = "avx2",
    .supported = avx2_supported,
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
