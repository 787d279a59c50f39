// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/philox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
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

/// What each row of a group is made of: bit j for drawn row j.
std::array<unsigned, kGroupRows> row_combinations() {
  std::array<unsigned, kGroupRows> rows{};
  for (unsigned j = 0; j < kDrawnRows; ++j) rows[j] = 1U << j;
  for (std::size_t v = kDrawnRows; v < kGroupRows; ++v)
    rows[v] = rows[v - 6] ^ rows[v - 7] ^ rows[0];
  return rows;
}

TEST(RoundingFraction, NumbersOfARowAreThoseOfItsCombinationOfDrawnRows) {
  const auto combinations = row_combinations();
  const RoundingKey key{.seed = 0xFEED'0000'0001, .operation = 9, .who = 2};
  const RandomGroup rows = random_group(key, 5 * kRandomGroup);
  for (std::size_t v = 0; v < kGroupRows; ++v) {
    for (std::size_t lane = 0; lane < kRandomRow; ++lane) {
      unsigned expected = 0;
      for (unsigned j = 0; j < kDrawnRows; ++j) {
        if ((combinations[v] >> j & 1) != 0) expected ^= rows[j][lane];
      }
      ASSERT_EQ(rows[v][lane], expected) << "row " << v << " lane " << lane;
    }
  }
}

TEST(RoundingFraction, AnyThreeRowsOfAGroupAreIndependent) {
  // Linearly, over the two-element field, and so as random variables: rows of odd size cancel
  // neither alone nor three at a time, and two of them only when they are the same.
  const auto combinations = row_combinations();
  EXPECT_EQ(std::set<unsigned>(combinations.begin(), combinations.end()).size(), kGroupRows);
  for (const unsigned row : combinations) EXPECT_EQ(std::popcount(row) % 2, 1);
}

TEST(RoundingFraction, PairsOfRowsTheSameDistanceApartAllDiffer) {
  // So a sample correlation over a distance has the variance that independent numbers give it.
  // Row 0 is no part of the m-sequence and may repeat one.
  const auto combinations = row_combinations();
  for (std::size_t distance = 1; distance < kGroupRows; ++distance) {
    std::set<unsigned> sums;
    for (std::size_t v = 1; v + distance < kGroupRows; ++v) {
      EXPECT_TRUE(sums.insert(combinations[v] ^ combinations[v + distance]).second)
          << "rows " << v << " and " << v + distance;
    }
  }
}

TEST(RoundingFraction, NoRankOperationOrDrawSharesABlock) {
  std::set<PhiloxCounter> counters;
  std::size_t drawn = 0;
  for (const std::uint16_t who : {std::uint16_t{0}, std::uint16_t{1}, kAggregatorRank}) {
    for (const std::uint32_t operation : {0U, 1U, 0xFFFFFFFFU}) {
      const RoundingKey key{.seed = 1, .operation = operation, .who = who};
      for (const std::uint64_t element : {0ULL, 1ULL, 15ULL, 2048ULL, 1ULL << 32, 1ULL << 55}) {
        counters.insert(fine_counter(key, element));
        ++drawn;
        if (element % kRandomGroup != 0) continue;
        for (unsigned i = 0; i < kGroupBlocks; ++i) {
          counters.insert(coarse_counter(key, element, i));
          ++drawn;
        }
      }
    }
  }
  EXPECT_EQ(counters.size(), drawn);
}

}  // namespace
}  // namespace natagg::proto
