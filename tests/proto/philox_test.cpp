// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/philox.hpp"

#include <gtest/gtest.h>

#include <set>

#include "oracle.hpp"
#include "proto/packet.hpp"
#include "proto/rounding.hpp"

namespace natagg::proto {
namespace {

// Known answers: Random123 1.14, tests/kat_vectors, "philox4x32 7" and "philox4x32 10".
constexpr PhiloxCounter kZeroCounter{};
constexpr PhiloxCounter kOnesCounter{0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF};
constexpr PhiloxCounter kPiCounter{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344};
constexpr PhiloxKey kZeroKey{};
constexpr PhiloxKey kOnesKey{0xFFFFFFFF, 0xFFFFFFFF};
constexpr PhiloxKey kPiKey{0xA4093822, 0x299F31D0};

TEST(Philox, SevenRoundsGiveTheKnownAnswers) {
  EXPECT_EQ(philox4x32(kZeroCounter, kZeroKey),
            (PhiloxCounter{0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48}));
  EXPECT_EQ(philox4x32(kOnesCounter, kOnesKey),
            (PhiloxCounter{0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662}));
  EXPECT_EQ(philox4x32(kPiCounter, kPiKey),
            (PhiloxCounter{0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A}));
}

TEST(Philox, TenRoundsGiveTheKnownAnswers) {
  EXPECT_EQ(philox4x32<10>(kZeroCounter, kZeroKey),
            (PhiloxCounter{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox4x32<10>(kOnesCounter, kOnesKey),
            (PhiloxCounter{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox4x32<10>(kPiCounter, kPiKey),
            (PhiloxCounter{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(RoundingFraction, EqualsItsDefinitionAtEveryPlaceOfAGroupAndNearEveryWrap) {
  const RoundingKey key{.seed = 0x0123'4567'89AB'CDEF, .operation = 0xFEDC'BA98, .who = 0xFFFF};
  for (const std::uint64_t base :
       {std::uint64_t{0}, std::uint64_t{1} << 31, std::uint64_t{1} << 32, std::uint64_t{1} << 35,
        std::uint64_t{1} << 53, (std::uint64_t{1} << 56) - 300}) {
    for (std::uint64_t i = 0; i < 600; ++i) {
      const std::uint64_t element = base + i - (base == 0 ? 0 : 300);
      ASSERT_EQ(rounding_fraction(key, element),
                oracle::fraction(key.seed, key.operation, key.who, element))
          << element;
    }
  }
}

TEST(RoundingFraction, IsOneHalfForNearest) {
  const RoundingKey key{.seed = 7, .operation = 1, .who = 3, .mode = Rounding::kNearest};
  EXPECT_EQ(rounding_fraction(key, 12345), std::uint64_t{1} << 63);
}

TEST(RoundingFraction, NoTwoElementsOfAGroupShareTheirSixteenBits) {
  const RoundingKey key{.seed = 1};
  std::set<std::pair<PhiloxCounter, std::uint64_t>> places;
  for (std::uint64_t element = 0; element < 3 * kRandomGroup; ++element) {
    places.emplace(coarse_counter(key, element), element % kRandomGroup / 16);
  }
  EXPECT_EQ(places.size(), 3 * kRandomGroup);
}

TEST(RoundingFraction, NoRankOperationOrDrawSharesABlock) {
  std::set<PhiloxCounter> counters;
  std::size_t drawn = 0;
  for (const std::uint16_t who : {std::uint16_t{0}, std::uint16_t{1}, kAggregatorRank}) {
    for (const std::uint32_t operation : {0U, 1U, 0xFFFFFFFFU}) {
      const RoundingKey key{.seed = 1, .operation = operation, .who = who};
      for (const std::uint64_t element : {0ULL, 1ULL, 15ULL, 128ULL, 1ULL << 32, 1ULL << 55}) {
        counters.insert(coarse_counter(key, element));
        counters.insert(fine_counter(key, element));
        drawn += 2;
      }
    }
  }
  EXPECT_EQ(counters.size(), drawn);
}

}  // namespace
}  // namespace natagg::proto
