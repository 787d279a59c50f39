// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/loss.hpp"

#include <gtest/gtest.h>

namespace natagg::proto {
namespace {

/// The first outputs of the reference implementation, splitmix64.c (Vigna, 2015).
TEST(SplitMix64, GivesTheReferencesNumbers) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
  EXPECT_EQ(random.next(), 4593380528125082431U);
  EXPECT_EQ(random.next(), 16408922859458223821U);
  EXPECT_EQ(SplitMix64(0).next(), 0xE220'A839'7B1D'CDAFU);
}

TEST(Loss, IsAsProbableAsAskedAndTheSameForTheSameSeed) {
  Loss loss(0.05, 7);
  Loss same(0.05, 7);
  Loss other(0.05, ~std::uint64_t{7});
  int lost = 0;
  int differences = 0;
  for (int i = 0; i < 100'000; ++i) {
    const bool drawn = loss.draw();
    EXPECT_EQ(same.draw(), drawn);
    differences += other.draw() != drawn;
    lost += drawn;
  }
  EXPECT_NEAR(lost, 5000, 5 * 69);  // 5 standard deviations
  EXPECT_GT(differences, 5000);
}

TEST(Loss, OfZeroLosesNothingAndOfOneAll) {
  Loss none(0, 7);
  Loss all(1, 7);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(none.draw());
    EXPECT_TRUE(all.draw());
  }
}

}  // namespace
}  // namespace natagg::proto
