// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/serial.hpp"

#include <gtest/gtest.h>

namespace natagg::proto {
namespace {

TEST(Serial, CountsAcrossTheWrap) {
  EXPECT_EQ(serial_distance(0xFFFFFFFF, 0), 1);
  EXPECT_EQ(serial_distance(0, 0xFFFFFFFF), -1);
  EXPECT_EQ(serial_distance(0xFFFFFF00, 0x00000100), 512);
  EXPECT_EQ(serial_distance(7, 7), 0);
}

TEST(Serial, OrdersAWindowThatStraddlesTheWrap) {
  std::uint32_t sequence = 0xFFFFFFF0;
  for (int i = 0; i < 32; ++i, ++sequence) {
    EXPECT_TRUE(serial_less(sequence, sequence + 1)) << sequence;
    EXPECT_FALSE(serial_less(sequence + 1, sequence)) << sequence;
    EXPECT_TRUE(serial_less(0xFFFFFFEF, sequence)) << sequence;
  }
}

TEST(Serial, ReachesHalfTheNumbersEachWay) {
  EXPECT_EQ(serial_distance(5, 5U + 0x7FFFFFFFU), 0x7FFFFFFF);
  EXPECT_EQ(serial_distance(5, 5U + 0x80000000U), INT32_MIN);
  EXPECT_TRUE(serial_less(5, 5U + 0x7FFFFFFFU));
  EXPECT_FALSE(serial_less(5, 5U + 0x80000001U));
}

TEST(Serial, IsNotSignExtendedInTheTopHalf) {
  EXPECT_TRUE(serial_less(0x7FFFFFFF, 0x80000000));
  EXPECT_EQ(serial_distance(0x80000000, 0x7FFFFFFF), -1);
}

}  // namespace
}  // namespace natagg::proto
