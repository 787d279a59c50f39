// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/net/checksum.hpp"

#include <gtest/gtest.h>

#include <random>

#include "daemon/frames.hpp"

namespace natagg::testing {
namespace {

using namespace net;

Bytes random_bytes(std::size_t size, std::mt19937& random) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Checksum, OfTheRfcsExampleIsTheRfcs) {
  // RFC 1071, section 3.
  const Bytes bytes = Writer{}.u16(0x0001).u16(0xF203).u16(0xF4F5).u16(0xF6F7).take();
  EXPECT_EQ(ones_sum(bytes), 0xDDF2);
}

TEST(Checksum, AgreesWithThePlainSumAtEveryLengthAndAlignment) {
  std::mt19937 random(1);
  const Bytes bytes = random_bytes(9100, random);
  for (std::size_t length = 0; length < 200; ++length) {
    for (std::size_t offset = 0; offset < 8; ++offset) {
      const auto part = std::span{bytes}.subspan(offset, length);
      EXPECT_EQ(static_cast<std::uint16_t>(~ones_sum(part)), plain_checksum(part))
          << length << " at " << offset;
    }
  }
  EXPECT_EQ(static_cast<std::uint16_t>(~ones_sum(bytes)), plain_checksum(bytes));
}

TEST(Checksum, OfManyOnesDoesNotOverflow) {
  const Bytes bytes(65535, std::byte{0xFF});
  EXPECT_EQ(static_cast<std::uint16_t>(~ones_sum(bytes)), plain_checksum(bytes));
}

TEST(Checksum, OfTwoPartsIsThatOfTheWhole) {
  std::mt19937 random(2);
  const Bytes bytes = random_bytes(101, random);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto first = std::span{bytes}.first(cut);
    const auto second = std::span{bytes}.subspan(cut);
    EXPECT_EQ(ones_append(ones_sum(first), cut, ones_sum(second)), ones_sum(bytes)) << cut;
  }
}

TEST(Checksum, OfThePseudoHeaderCoversEveryField) {
  const Bytes pseudo = Writer{}.u32(0xC0A8'FFFE).u32(0xFFFF'0001).u16(17).u16(65535).take();
  EXPECT_EQ(pseudo_header_sum(0xC0A8'FFFE, 0xFFFF'0001, 17, 65535), ones_sum(pseudo));
}

}  // namespace
}  // namespace natagg::testing
