// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Every implementation, forced by name, against the definition, with float32 where a type is
// needed.

#include "proto/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "kernel_inputs.hpp"
#include "kernel_support.hpp"
#include "oracle.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace natagg {
namespace {

using proto::RoundingKey;

Bytes expected_encode(std::span<const float> in, std::uint64_t first, const RoundingKey& key,
                      int shift) {
  Bytes result;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto outcome = oracle::encode(double{in[i]}, shift, fraction_at(key, first + i));
    result.bytes.push_back(outcome.byte);
    result.tally += outcome.tally;
  }
  return result;
}

Bytes expected_recompress(std::span<const std::int64_t> in, std::uint64_t first,
                          const RoundingKey& key) {
  Bytes result;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto outcome = oracle::recompress(in[i], fraction_at(key, first + i));
    result.bytes.push_back(outcome.byte);
    result.tally += outcome.tally;
  }
  return result;
}

class Float32KernelTest : public KernelTest {
 protected:
  Bytes encode(std::span<const float> in, std::uint64_t first, const RoundingKey& key, int shift,
               std::size_t in_alignment = 0, std::size_t out_alignment = 0) {
    return KernelTest::encode<float>(kernels_->encode_f32, in, first, key, shift, in_alignment,
                                     out_alignment);
  }

  Bytes recompress(std::span<const std::int64_t> in, std::uint64_t first, const RoundingKey& key,
                   std::size_t in_alignment = 0, std::size_t out_alignment = 0) {
    Placed<std::int64_t> source(in, in_alignment);
    Placed<std::uint8_t> out(in.size(), out_alignment);
    Bytes result;
    kernels_->recompress(source.data(), out.data(), in.size(), first, key, result.tally);
    EXPECT_TRUE(out.intact());
    result.bytes = out.values();
    return result;
  }
};

TEST_P(Float32KernelTest, RoundsAsDefinedAtEveryLengthAndAlignment) {
  constexpr std::size_t kMost = 2 * kMostLanes + 1;
  const std::vector<float> floats = inputs::floats(kMost, 0, 11);
  const std::vector<std::int64_t> sums = inputs::sums(kMost, 12);
  for (const RoundingKey& key : {kStochastic, kNearest}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{77}}) {
      for (std::size_t count = 0; count <= kMost; ++count) {
        const auto some_floats = std::span(floats).first(count);
        const auto some_sums = std::span(sums).first(count);
        const Bytes encoded = expected_encode(some_floats, first, key, 0);
        const Bytes recompressed = expected_recompress(some_sums, first, key);
        for (std::size_t alignment = 0; alignment < 64; ++alignment) {
          ASSERT_EQ(encode(some_floats, first, key, 0, alignment / 4 * 4, alignment), encoded)
              << count << " values at alignment " << alignment;
          ASSERT_EQ(recompress(some_sums, first, key, alignment / 8 * 8, alignment), recompressed)
              << count << " values at alignment " << alignment;
        }
      }
    }
  }
}

TEST_P(Float32KernelTest, RoundsAsDefinedWhereverAChunkBegins) {
  const std::vector<float> floats = inputs::floats(300, 0, 21);
  const std::vector<std::int64_t> sums = inputs::sums(300, 22);
  for (const std::uint64_t border :
       {std::uint64_t{128}, std::uint64_t{1408}, std::uint64_t{2048}, std::uint64_t{1} << 31,
        std::uint64_t{1} << 32, std::uint64_t{1} << 39, std::uint64_t{1} << 53,
        std::uint64_t{1} << 56}) {
    for (std::uint64_t before = 0; before <= 128; before += before < 4 || before > 123 ? 1 : 17) {
      const std::uint64_t first = border - before;
      ASSERT_EQ(encode(floats, first, kStochastic, 0),
                expected_encode(floats, first, kStochastic, 0))
          << first;
      ASSERT_EQ(recompress(sums, first, kStochastic), expected_recompress(sums, first, kStochastic))
          << first;
    }
  }
}

TEST_P(Float32KernelTest, RoundsAsDefinedFromEveryRowOfARandomGroup) {
  constexpr std::size_t kCount = 200;
  const std::vector<float> floats = inputs::floats(proto::kRandomGroup + kCount, 0, 23);
  const std::vector<std::int64_t> sums = inputs::sums(proto::kRandomGroup + kCount, 24);
  for (std::size_t first = 0; first < proto::kRandomGroup; first += proto::kRandomRow) {
    const auto some_floats = std::span(floats).subspan(first, kCount);
    const auto some_sums = std::span(sums).subspan(first, kCount);
    ASSERT_EQ(encode(some_floats, first, kStochastic, 0),
              expected_encode(some_floats, first, kStochastic, 0))
        << first;
    ASSERT_EQ(recompress(some_sums, first, kStochastic),
              expected_recompress(some_sums, first, kStochastic))
        << first;
  }
}

TEST_P(Float32KernelTest, EncodesAsDefinedUnderEveryShift) {
  for (int shift = -nat8::kMaxShift; shift <= nat8::kMaxShift; ++shift) {
    const std::vector<float> floats = inputs::floats(512, shift, 31);
    for (const RoundingKey& key : {kStochastic, kNearest}) {
      ASSERT_EQ(encode(floats, 0, key, shift), expected_encode(floats, 0, key, shift)) << shift;
    }
  }
}

TEST_P(Float32KernelTest, RecompressesAsDefinedAroundEveryPowerOfTwoAndHalfWayBetween) {
  std::vector<std::int64_t> sums;
  for (int power = 0; power < 64; ++power) {
    const std::uint64_t two = std::uint64_t{1} << power;
    for (const std::uint64_t centre : {two, two + two / 2, two + two / 4, two + two / 65536}) {
      for (int offset = -2; offset <= 2; ++offset) {
        const std::uint64_t sum = centre + static_cast<std::uint64_t>(std::int64_t{offset});
        sums.push_back(static_cast<std::int64_t>(sum));
        sums.push_back(static_cast<std::int64_t>(0 - sum));
        // All ones below the leading one, but for one bit.
        sums.push_back(static_cast<std::int64_t>(sum ^ (sum >> 7)));
      }
    }
  }
  for (std::uint64_t first = 0; first < 128 * 40; first += 128) {
    ASSERT_EQ(recompress(sums, first, kStochastic), expected_recompress(sums, first, kStochastic));
  }
  ASSERT_EQ(recompress(sums, 0, kNearest), expected_recompress(sums, 0, kNearest));
}

TEST_P(Float32KernelTest, LetsTheLowerFortyEightBitsDecideExactlyWhenTheUpperSixteenCannot) {
  int up = 0;
  int down = 0;
  for (std::uint64_t element = 0; element < 4096; ++element) {
    const std::uint64_t r = fraction_at(kStochastic, element);
    // f + R has sixteen ones on top; the 7 bits of f below them meet the fine bits of R.
    const auto upper = static_cast<std::uint32_t>(0xFFFF - (r >> 48));
    const std::uint64_t missing = (std::uint64_t{1} << 48) - (r & 0xFFFF'FFFF'FFFF);
    const auto least = static_cast<std::uint32_t>((missing + (1ULL << 41) - 1) >> 41);
    for (const std::uint32_t low : {least - 1, std::min(least, 127U)}) {
      if (low > 127) continue;
      const auto value = std::bit_cast<float>(127U << 23 | upper << 7 | low);
      const std::uint8_t byte = encode({&value, 1}, element, kStochastic, 0).bytes[0];
      ASSERT_EQ(byte, low >= least ? 51 : 50) << element;
      ++(byte == 51 ? up : down);
    }
    // Below code 0 the same bits, of u itself: 2^-50 (upper.low), left-aligned for a float.
    const std::uint32_t u = upper << 7 | std::min(least, 127U);
    if (u != 0) {
      const float tiny = std::ldexp(static_cast<float>(u), -50 - 23);
      ASSERT_EQ(encode({&tiny, 1}, element, kStochastic, 0).bytes[0],
                least <= 127 ? 0 : nat8::kZero)
          << element;
    }
    // A sum of 2^60 scale decides 44 more bits: the least f that rounds up, and one less.
    const std::uint64_t missing_64 = 0 - r;
    const std::int64_t least_sum = static_cast<std::int64_t>((missing_64 + 31) >> 5);
    if (least_sum >> 59 == 0) {
      const std::int64_t base = std::int64_t{1} << 59;
      const std::int64_t pair[] = {base + least_sum, base + least_sum - 1};
      EXPECT_EQ(recompress({&pair[0], 1}, element, kStochastic).bytes[0], 60) << element;
      EXPECT_EQ(recompress({&pair[1], 1}, element, kStochastic).bytes[0], 59) << element;
    }
  }
  EXPECT_GT(up, 1000);
  EXPECT_GT(down, 1000);
}

TEST_P(Float32KernelTest, DecodesEveryByteAsTheReferenceDoes) {
  std::vector<std::uint8_t> bytes = inputs::valid_bytes(2 * kMostLanes + 1, 41);
  const std::vector<std::uint8_t> every = inputs::every_valid_byte();
  bytes.insert(bytes.end(), every.begin(), every.end());
  for (const int shift : {-64, -63, -52, -45, -1, 0, 7, 64}) {
    for (const std::uint32_t divisor : {1U, 3U, 8U, 9U, 10'000U, (1U << 24) + 1, 0xFFFFFFFFU}) {
      std::vector<std::uint32_t> expected;
      for (const std::uint8_t byte : bytes) {
        expected.push_back(std::bit_cast<std::uint32_t>(nat8::decode_float(byte, shift, divisor)));
      }
      for (std::size_t count = 0; count <= bytes.size(); ++count) {
        Placed<std::uint8_t> in(std::span<const std::uint8_t>(bytes).first(count), count * 5 % 64);
        for (const auto decode : {kernels_->decode_f32, kernels_->stream_f32}) {
          Placed<float> out(count, count * 4 % 64);
          decode(in.data(), out.data(), count, shift, divisor);
          ASSERT_TRUE(out.intact());
          const std::vector<float> values = out.values();
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), expected[i])
                << int{bytes[i]} << " shift " << shift << " / " << divisor;
          }
        }
      }
    }
  }
}

TEST_P(Float32KernelTest, StoresAndAddsEveryByteAtEveryLengthAndAlignment) {
  const std::vector<std::uint8_t> bytes = inputs::valid_bytes(2 * kMostLanes + 1, 51);
  const std::vector<std::int64_t> before = inputs::small_sums(bytes.size(), 52);
  for (std::size_t count = 0; count <= bytes.size(); ++count) {
    std::vector<std::int64_t> addends;
    std::vector<std::int64_t> sums;
    for (std::size_t i = 0; i < count; ++i) {
      addends.push_back(nat8::addend(bytes[i]));
      sums.push_back(before[i] + addends[i]);
    }
    for (std::size_t alignment = 0; alignment < 64; ++alignment) {
      Placed<std::uint8_t> in(std::span<const std::uint8_t>(bytes).first(count), alignment);
      Placed<std::int64_t> stored(count, alignment / 8 * 8);
      Placed<std::int64_t> slot(std::span<const std::int64_t>(before).first(count),
                                alignment / 8 * 8);
      kernels_->store(in.data(), stored.data(), count);
      kernels_->accumulate(in.data(), slot.data(), count);
      ASSERT_TRUE(stored.intact() && slot.intact());
      ASSERT_EQ(stored.values(), addends) << count << " values at alignment " << alignment;
      ASSERT_EQ(slot.values(), sums) << count << " values at alignment " << alignment;
    }
  }
}

TEST_P(Float32KernelTest, WideSumsAreExactBeyondInt64InEveryOrder) {
  for (std::size_t count = 0; count <= 2 * kMostLanes + 1; ++count) {
    Placed<std::int64_t> slot(count, count * 8 % 64);
    Placed<std::int16_t> carry(count, count * 2 % 64);
    std::fill_n(slot.data(), count, 0);
    std::fill_n(carry.data(), count, std::int16_t{0});
    __extension__ using Wide = __int128;
    std::vector<Wide> expected(count);
    for (std::uint64_t worker = 0; worker < 40; ++worker) {
      std::vector<std::uint8_t> bytes = inputs::valid_bytes(count, 61 + worker);
      for (std::size_t i = 0; i < count; ++i) {
        // Lanes that only grow, only fall, and change sign.
        if (i % 3 == 0) bytes[i] = 60;
        if (i % 3 == 1) bytes[i] = 60 | nat8::kSign;
        expected[i] += nat8::addend(bytes[i]);
      }
      kernels_->accumulate_wide(bytes.data(), slot.data(), carry.data(), count);
    }
    ASSERT_TRUE(slot.intact() && carry.intact());
    for (std::size_t i = 0; i < count; ++i) {
      const Wide sum = (static_cast<Wide>(carry.data()[i]) << 64) +
                       static_cast<Wide>(static_cast<std::uint64_t>(slot.data()[i]));
      ASSERT_TRUE(sum == expected[i]) << "lane " << i << " of " << count;
    }
  }
}

TEST_P(Float32KernelTest, WideSumsOfTenThousandWorkersAreExact) {
  std::vector<std::uint8_t> bytes(64, 60);
  std::vector<std::int64_t> slot(64);
  std::vector<std::int16_t> carry(64);
  for (int worker = 0; worker < 10'000; ++worker) {
    kernels_->accumulate_wide(bytes.data(), slot.data(), carry.data(), slot.size());
  }
  // 10,000 * 2^60 = 625 * 2^64.
  EXPECT_EQ(slot, std::vector<std::int64_t>(64, 0));
  EXPECT_EQ(carry, std::vector<std::int16_t>(64, 625));
}

TEST_P(Float32KernelTest, ScansEveryByteValueAtEveryPlace) {
  for (std::size_t count = 1; count <= 2 * kMostLanes + 1; ++count) {
    const std::size_t place = count * 37 % count;
    for (int value = 0; value < 256; ++value) {
      std::vector<std::uint8_t> bytes(count, nat8::kZero);
      const auto byte = static_cast<std::uint8_t>(value);
      for (const std::size_t at : {place, count - 1, std::size_t{0}}) {
        bytes[at] = byte;
        Placed<std::uint8_t> in(std::span<const std::uint8_t>(bytes), count % 64);
        const Scan scan = kernels_->scan(in.data(), count);
        ASSERT_EQ(scan.malformed, !nat8::is_valid(byte)) << value << " in " << count;
        ASSERT_EQ(scan.any_special, nat8::is_special(byte)) << value << " in " << count;
        ASSERT_EQ(scan.largest_code, (byte & nat8::kFlag) != 0 ? 0 : byte & 0x3F)
            << value << " in " << count;
        bytes[at] = nat8::kZero;
      }
    }
  }
  EXPECT_EQ(kernels_->scan(nullptr, 0).largest_code, 0);
  EXPECT_FALSE(kernels_->scan(nullptr, 0).malformed);
}

TEST_P(Float32KernelTest, ScanFindsTheLargestCodeBesideSpecials) {
  std::vector<std::uint8_t> bytes(200, 3);
  bytes[7] = nat8::kNan;
  bytes[8] = 41 | nat8::kSign;
  bytes[150] = 40;
  const Scan scan = kernels_->scan(bytes.data(), bytes.size());
  EXPECT_EQ(scan.largest_code, 41);
  EXPECT_TRUE(scan.any_special);
  EXPECT_FALSE(scan.malformed);
}

TEST_P(Float32KernelTest, AddsToWhatTheTallyHolds) {
  const std::vector<float> floats(130, 0.0F);
  std::vector<std::uint8_t> bytes(floats.size());
  nat8::Tally tally{.clipped = 1, .flushed = 2, .zeros = 3, .nans = 4, .infs = 5};
  kernels_->encode_f32(floats.data(), bytes.data(), floats.size(), 3, kStochastic, 0, tally);
  EXPECT_EQ(tally, (nat8::Tally{.clipped = 1, .flushed = 2, .zeros = 133, .nans = 4, .infs = 5}));
}

TEST_P(Float32KernelTest, GivesTheSameBitsInEveryFloatingPointEnvironment) {
  const std::vector<float> floats = inputs::floats(600, -64, 71);
  const std::vector<std::int64_t> sums = inputs::sums(600, 72);
  const std::vector<std::uint8_t> bytes = inputs::valid_bytes(600, 73);
  const Bytes encoded = expected_encode(floats, 0, kStochastic, -64);
  const Bytes recompressed = expected_recompress(sums, 0, kStochastic);
  std::vector<float> decoded(bytes.size());
  kernels_->decode_f32(bytes.data(), decoded.data(), bytes.size(), -64, 3'000'000'001U);

  for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    for (const bool flush : {false, true}) {
      std::vector<float> out(bytes.size());
      Bytes encoded_here{.bytes = std::vector<std::uint8_t>(floats.size()), .tally = {}};
      Bytes recompressed_here = encoded_here;
      std::fenv_t saved;
      ASSERT_EQ(std::fegetenv(&saved), 0);
      std::fesetround(mode);
#if defined(__x86_64__)
      if (flush) _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON | 0x40);  // and denormals are zero
#endif
      kernels_->encode_f32(floats.data(), encoded_here.bytes.data(), floats.size(), 0, kStochastic,
                           -64, encoded_here.tally);
      kernels_->recompress(sums.data(), recompressed_here.bytes.data(), sums.size(), 0, kStochastic,
                           recompressed_here.tally);
      kernels_->decode_f32(bytes.data(), out.data(), bytes.size(), -64, 3'000'000'001U);
      std::fesetenv(&saved);
      EXPECT_EQ(encoded_here, encoded) << mode << flush;
      EXPECT_EQ(recompressed_here, recompressed) << mode << flush;
      for (std::size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(decoded[i]))
            << mode << flush << " byte " << int{bytes[i]};
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Float32KernelTest, testing::ValuesIn(all_names()),
                         [](const auto& test) { return std::string(test.param); });

TEST(Kernels, ScalarIsAlwaysThereAndUnknownNamesAreNot) {
  ASSERT_NE(find_kernels("scalar"), nullptr);
  EXPECT_EQ(find_kernels("scalar")->name, "scalar");
  EXPECT_EQ(find_kernels("mmx"), nullptr);
  EXPECT_EQ(find_kernels(""), nullptr);
}

TEST(Kernels, TheDefaultIsTheNamedOneElseTheBestSupported) {
  const char* forced = std::getenv("NATAGG_KERNELS");
  const Kernels* named = forced == nullptr ? nullptr : find_kernels(forced);
  if (named != nullptr) {
    EXPECT_EQ(default_kernels().name, named->name);
  } else {
    const auto best = std::find_if(all_kernels().begin(), all_kernels().end(),
                                   [](const Kernels& kernels) { return kernels.supported(); });
    EXPECT_EQ(default_kernels().name, best->name);
  }
}

}  // namespace
}  // namespace natagg
