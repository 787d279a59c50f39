// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Sums against exact integers, for random worlds and values.
#include "aggregator/core/slot.hpp"

#include <gtest/gtest.h>

#include <random>

namespace natagg::aggregator {
namespace {

__extension__ using Int128 = __int128;

constexpr std::uint16_t kValues = 128;
constexpr std::uint16_t kWorlds[] = {1, 2, 7, 8, 9, 16, 63, 64, 65, 300};
constexpr proto::RoundingKey kKey{.seed = 3, .who = proto::kAggregatorRank};

/// The byte of an exact sum of any size, from the definition.
std::uint8_t recompressed(Int128 sum, std::uint32_t operation, std::uint64_t element) {
  constexpr std::int64_t kBeyond = (std::int64_t{1} << 60) + 1;  // clips like all that is larger
  if (sum > kBeyond) sum = kBeyond;
  if (sum < -kBeyond) sum = -kBeyond;
  proto::RoundingKey key = kKey;
  key.operation = operation;
  nat8::Tally tally;
  return nat8::recompress(static_cast<std::int64_t>(sum), proto::rounding_fraction(key, element),
                          tally);
}

class SlotSums : public ::testing::TestWithParam<std::string_view> {};

TEST_P(SlotSums, EqualExactIntegersForAnyWorld) {
  const Kernels* kernels = find_kernels(GetParam());
  if (kernels == nullptr) GTEST_SKIP() << "this CPU has no " << GetParam();
  std::mt19937_64 random(20);
  for (std::uint16_t world : kWorlds) {
    // Large codes only for some worlds: both the 64-bit and the 80-bit path must be taken.
    for (const int least_code : {0, 55, 60}) {
      SlotTable table(1, kValues, world, 0, kKey, *kernels);
      const Chunk chunk{.element = 256, .fingerprint = 1, .operation = 5, .count = 101};
      ASSERT_EQ(table.locate(0), SlotTable::Position::kNext);
      table.open(0, chunk, 0);
      std::vector<Int128> exact(chunk.count);
      nat8::Tally tally;
      for (std::uint16_t rank = 0; rank < world; ++rank) {
        std::vector<std::uint8_t> bytes(chunk.count);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          const auto code = static_cast<std::uint8_t>(
              least_code + static_cast<int>(random() % static_cast<unsigned>(61 - least_code)));
          const bool negative = i < 40 ? random() % 2 != 0 : i < 70;
          bytes[i] = static_cast<std::uint8_t>(code | (negative ? nat8::kSign : 0));
          if (random() % 8 == 0) bytes[i] = nat8::kZero;
          exact[i] += nat8::addend(bytes[i]);
        }
        const bool last =
            table.contribute(0, rank, bytes, kernels->scan(bytes.data(), bytes.size()), tally);
        EXPECT_EQ(last, rank + 1 == world);
      }
      const Result result = table.result(0);
      ASSERT_EQ(result.chunk, chunk);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        ASSERT_EQ(result.bytes[i], recompressed(exact[i], 5, 256 + i))
            << "world " << world << " least code " << least_code << " value " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SlotSums, ::testing::Values("scalar", "avx2", "avx512"),
                         [](const auto& param) { return std::string(param.param); });

TEST(SlotTable, NamesTheLowestMissingRankInLargeWorlds) {
  constexpr std::uint16_t kWorld = 130;
  SlotTable table(1, kValues, kWorld, 0, kKey, default_kernels());
  table.open(0, {.count = 1}, 0);
  const std::uint8_t zero = nat8::kZero;
  nat8::Tally tally;
  for (std::uint16_t rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(table.pending(0).missing.value(), rank);
    EXPECT_EQ(table.pending(0).missing_count.value(), kWorld - rank);
    EXPECT_TRUE(table.any_open_without(rank, [](auto, const Chunk&) { return true; }));
    table.contribute(0, rank, {&zero, 1}, {}, tally);
    EXPECT_FALSE(table.open_slots() == 0 && rank + 1 < kWorld);
  }
  EXPECT_EQ(table.open_slots(), 0U);
}

}  // namespace
}  // namespace natagg::aggregator
