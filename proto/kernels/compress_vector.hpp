// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Encode and recompress on vectors. Both reduce to one problem: a 32-bit pattern per value, that
// is sign, exponent and the upper bits of the fraction as in an IEEE 754 number, and 16 random
// bits. Adding these just below the leading bit makes the exponent field the rounded exponent;
// when the 16 bits of the sum are all ones, the lower 48 random bits could still carry, and the
// reference decides. All of this is done on complements (~x = -x - 1), where all ones are zeros
// and one instruction finds them. Included by each instruction set's kernels.
//
// A Source says where patterns come from:
//   Element                   what one value is in memory
//   load(const Element*)      the patterns of the next Isa::kLanes values, fraction truncated
//   kFraction, kBias          of the pattern's format, kFraction >= 16
//   kExact                    false when load() may have cut off bits with no trace
//   kReference                the reference for one Element: reference.hpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "proto/kernels/random_rows.hpp"
#include "proto/kernels/reference.hpp"

namespace natagg {
namespace {

template <typename Isa, typename Source, bool kStochastic>
class Compressor {
 public:
  using Vector = typename Isa::Vector;
  using Mask = typename Isa::Mask;
  using Element = typename Source::Element;

  [[gnu::always_inline]] Compressor(const proto::RoundingKey& key, int shift, nat8::Tally& tally)
      : key_(key),
        shift_(shift),
        tally_(tally),
        lowest_(static_cast<std::uint32_t>(Source::kBias + nat8::kMinExponent + shift)
                << kFraction) {}

  /// The elements `first` and following.
  [[gnu::always_inline]] void run(const Element* in, std::uint8_t* out, std::size_t count,
                                  std::uint64_t first) {
    const std::size_t offset = first % kRows;
    std::size_t i = 0;
    if (offset != 0) {
      i = count < kRows - offset ? count : kRows - offset;
      ragged_rows(in, out, i, first);
    }
    while (count - i >= kRows) {
      const std::uint64_t element = first + i;
      const std::uint64_t in_group = proto::kRandomGroup - element % proto::kRandomGroup;
      const std::size_t left = (count - i) / kRows * kRows;
      const std::size_t end = i + (left < in_group ? left : in_group);
      Numbers numbers(key_, element);
      for (; i < end; i += kRows) {
        prefetch(in + i);
        rows(in + i, out + i, first + i, numbers);
      }
    }
    if (i < count) ragged_rows(in + i, out + i, count - i, first + i);
  }

 private:
  static constexpr int kFraction = Source::kFraction;
  static constexpr std::uint32_t kOne = std::uint32_t{1} << kFraction;
  static constexpr std::uint32_t kRange = static_cast<std::uint32_t>(nat8::kMaxCode) << kFraction;
  static constexpr std::uint32_t kInfinity = 0x7FFFFFFF & ~(kOne - 1);
  static constexpr std::uint32_t kCoarse = std::uint32_t{0xFFFF} << (kFraction - 16);
  static constexpr std::size_t kPrefetchBytes = 4096;
  static constexpr int kBatch = 4;  // vectors
  static constexpr std::size_t kBatchElements = kBatch * Isa::kLanes;
  // Complements as bytes, of codes 1 to 59 and of zero.
  static constexpr int kLeastByte = ~(nat8::kMaxCode - 1);
  static constexpr int kMostByte = ~1;
  static constexpr std::uint8_t kNotZero = static_cast<std::uint8_t>(~nat8::kZero);

  /// The same number in every place.
  struct Halves {
    [[gnu::always_inline]] Halves(const proto::RoundingKey&, std::uint64_t) {}
    [[gnu::always_inline]] Vector operator[](int) const { return Isa::broadcast32(kOne / 2); }
    [[gnu::always_inline]] void follow(int) {}
  };
  using Random = RandomRows<Isa, kFraction - 16>;
  using Numbers = std::conditional_t<kStochastic, Random, Halves>;
  static constexpr std::size_t kRows = Random::kElements;

  /// `count` elements, in whole rows with the rows' other elements taken as zero.
  [[gnu::noinline]] void ragged_rows(const Element* in, std::uint8_t* out, std::size_t count,
                                     std::uint64_t first) {
    const std::size_t offset = first % kRows;
    Element padded_in[kRows] = {};
    std::uint8_t padded_out[kRows];
    __builtin_memcpy(padded_in + offset, in, count * sizeof(Element));
    Numbers numbers(key_, first - offset);
    rows(padded_in, padded_out, first - offset, numbers);
    __builtin_memcpy(out, padded_out + offset, count);
    tally_.zeros -= kRows - count;
  }

  [[gnu::always_inline]] void rows(const Element* in, std::uint8_t* out, std::uint64_t element,
                                   Numbers& numbers) {
#pragma GCC unroll 4
    for (int v = 0; v < Random::kVectors; v += kBatch) {
      Vector random[kBatch];
#pragma GCC unroll 4
      for (int j = 0; j < kBatch; ++j) random[j] = numbers[v + j];
#pragma GCC unroll 4
      for (int j = 0; j < kBatch; j += Random::kPerRow) numbers.follow(v + j);
      const int i = v * Isa::kLanes;
      batch(in + i, out + i, random, element + static_cast<std::uint64_t>(i));
    }
  }

  /// Asks for the rows that come a few thousand bytes later.
  [[gnu::always_inline]] static void prefetch(const Element* in) {
    constexpr std::size_t kLine = 64;
    const auto ahead = reinterpret_cast<std::uintptr_t>(in) + kPrefetchBytes;
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows * sizeof(Element); i += kLine) {
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + i));
    }
  }

  [[gnu::always_inline]] void batch(const Element* in, std::uint8_t* out,
                                    const Vector (&random)[kBatch], std::uint64_t element) {
    Vector pattern[kBatch];
    Vector not_sum[kBatch];
    Vector not_code[kBatch];
#pragma GCC unroll 4
    for (int j = 0; j < kBatch; ++j) {
      pattern[j] = Source::load(in + j * Isa::kLanes);
      const Vector magnitude = Isa::and_(pattern[j], Isa::broadcast32(0x7FFFFFFF));
      const Vector not_offset = Isa::sub32(Isa::broadcast32(lowest_ - 1), magnitude);
      not_sum[j] = Isa::sub32(not_offset, random[j]);
      not_code[j] = Isa::template shift_right_signed32<kFraction>(not_sum[j]);
    }
    const Vector packed = Isa::pack(not_code);
    // A random number is below one code, so a sum at or above code 1 began at or above code 0.
    const bool decided = !kStochastic || Isa::all_meet32(not_sum, kCoarse);
    if (Isa::template all_within8<kLeastByte, kMostByte>(packed) && decided) [[likely]] {
      return Isa::store_bytes(out, packed, Isa::pack(pattern));
    }
    // Other than zeros nothing need be unusual, as in every second gradient.
    Vector magnitude[kBatch];
#pragma GCC unroll 4
    for (int j = 0; j < kBatch; ++j) {
      magnitude[j] = Isa::and_(pattern[j], Isa::broadcast32(0x7FFFFFFF));
    }
    const auto zeros = Isa::zeros8(Isa::pack(magnitude));
    if (Isa::template all_within8<kLeastByte, kMostByte>(packed, zeros) && decided) {
      const Vector codes = Isa::select8(zeros, Isa::broadcast8(kNotZero), packed);
      const Vector signs = Isa::select8(zeros, Isa::broadcast32(0), Isa::pack(pattern));
      Isa::store_bytes(out, codes, signs);
      tally_.zeros += Isa::count8(zeros);
      return;
    }
    unusual_batch(in, out, random[0], random[1], random[2], random[3], element);
  }

  /// A batch in which some lane is neither zero nor rounds to codes 1 to 59, or is undecided.
  [[gnu::noinline]] void unusual_batch(const Element* in, std::uint8_t* out, Vector random0,
                                       Vector random1, Vector random2, Vector random3,
                                       std::uint64_t element) {
    const Vector random[kBatch] = {random0, random1, random2, random3};
    Vector pattern[kBatch];
    Vector not_code[kBatch];
    std::uint32_t numbers[kBatchElements];
    std::uint64_t redo = 0;
    for (int j = 0; j < kBatch; ++j) {
      __builtin_memcpy(numbers + j * Isa::kLanes, &random[j], sizeof(Vector));
      pattern[j] = Source::load(in + j * Isa::kLanes);
      redo |= std::uint64_t{round_each(pattern[j], not_code[j], random[j])} << (j * Isa::kLanes);
    }
    Isa::store_bytes(out, Isa::pack(not_code), Isa::pack(pattern));
    while (redo != 0) {
      const int i = __builtin_ctzll(redo);
      redo &= redo - 1;
      const auto coarse = static_cast<std::uint16_t>(numbers[i] >> (kFraction - 16));
      const std::uint64_t fraction =
          whole_fraction(key_, element + static_cast<std::uint64_t>(i), coarse);
      out[i] = Source::kReference(in[i], shift_, fraction, tally_);
    }
  }

  [[gnu::always_inline]] static Mask all_ones(Vector sum) {
    const Vector ones = Isa::broadcast32(kCoarse);
    return Isa::equal32(Isa::and_(sum, ones), ones);
  }

  /// The complemented codes of any lanes at all; counts them, and returns those that the reference
  /// must do. `pattern` loses the sign where a byte has none.
  [[gnu::always_inline]] std::uint32_t round_each(Vector& pattern, Vector& not_code,
                                                  const Vector& random) {
    const Vector magnitude = Isa::and_(pattern, Isa::broadcast32(0x7FFFFFFF));
    const Vector none = Isa::broadcast32(0);
    const Mask below = Isa::less32(magnitude, Isa::broadcast32(lowest_));
    const Mask zero = Isa::equal32(magnitude, none);
    const Mask clipped = Isa::less32(Isa::broadcast32(lowest_ + kRange), magnitude);
    const Mask infinite = Isa::equal32(magnitude, Isa::broadcast32(kInfinity));
    const Mask nan = Isa::less32(Isa::broadcast32(kInfinity), magnitude);

    // Below code 0: u in units of 2^-kFraction; a denormal has no leading one and exponent 1.
    const Mask denormal = Isa::less32(magnitude, Isa::broadcast32(kOne));
    const Vector fraction = Isa::and_(magnitude, Isa::broadcast32(kOne - 1));
    const Vector significand =
        Isa::select(denormal, fraction, Isa::or_(fraction, Isa::broadcast32(kOne)));
    const Vector exponent = Isa::select(denormal, Isa::broadcast32(1),
                                        Isa::template shift_right32<kFraction>(magnitude));
    const Vector distance = Isa::sub32(Isa::broadcast32(lowest_ >> kFraction), exponent);
    const Vector u = Isa::shift_right_each32(significand, distance);
    const Vector low_sum = Isa::add32(u, random);
    const Mask flushed = Isa::less32(low_sum, Isa::broadcast32(kOne));

    const Vector sum = Isa::add32(Isa::sub32(magnitude, Isa::broadcast32(lowest_)), random);
    std::uint32_t redo = 0;
    if constexpr (kStochastic) redo = Isa::bits(all_ones(Isa::select(below, low_sum, sum)));
    redo &= ~(Isa::bits(zero) | Isa::bits(clipped));
    if constexpr (!Source::kExact) {
      redo |= Isa::bits(Isa::equal32(magnitude, Isa::broadcast32(lowest_ + kRange)));
    }

    Vector code = Isa::select(below, Isa::select(flushed, Isa::broadcast32(nat8::kZero), none),
                              Isa::template shift_right32<kFraction>(sum));
    code = Isa::select(clipped, Isa::broadcast32(nat8::kMaxCode), code);
    code = Isa::select(infinite, Isa::broadcast32(nat8::kPositiveInf), code);
    code = Isa::select(nan, Isa::broadcast32(nat8::kNan), code);
    not_code = Isa::sub32(Isa::broadcast32(~std::uint32_t{0}), code);
    pattern = Isa::select(nan, none, pattern);
    pattern = Isa::select(below, Isa::select(flushed, none, pattern), pattern);

    const auto count = [](std::uint32_t bits) {
      return static_cast<std::uint64_t>(__builtin_popcount(bits));
    };
    tally_.zeros += count(Isa::bits(zero));
    tally_.nans += count(Isa::bits(nan));
    tally_.infs += count(Isa::bits(infinite));
    tally_.clipped += count(Isa::bits(clipped) & ~(Isa::bits(infinite) | Isa::bits(nan)));
    tally_.flushed += count(Isa::bits(below) & Isa::bits(flushed) & ~(Isa::bits(zero) | redo));
    return redo;
  }

  const proto::RoundingKey& key_;
  const int shift_;
  nat8::Tally& tally_;
  const std::uint32_t lowest_;  // the pattern of code 0
};

template <typename Isa, typename Source>
[[gnu::always_inline]] inline void compress(const typename Source::Element* in, std::uint8_t* out,
                                            std::size_t count, std::uint64_t first,
                                            const proto::RoundingKey& key, int shift,
                                            nat8::Tally& tally) {
  if (key.mode == proto::Rounding::kNearest) {
    Compressor<Isa, Source, false>(key, shift, tally).run(in, out, count, first);
  } else {
    Compressor<Isa, Source, true>(key, shift, tally).run(in, out, count, first);
  }
}

}  // namespace
}  // namespace natagg
