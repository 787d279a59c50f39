// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/packet.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "proto/endpoint.hpp"
#include "proto/operation.hpp"

namespace natagg::proto {
namespace {

using Datagram = std::vector<std::byte>;

constexpr Type kControlTypes[] = {Type::kHello,   Type::kOffer, Type::kJoin,      Type::kWelcome,
                                  Type::kRefuse,  Type::kLeave, Type::kHeartbeat, Type::kProbe,
                                  Type::kPending, Type::kAbort, Type::kMove,      Type::kChallenge,
                                  Type::kNack};

Datagram make_datagram(const Header& header, std::size_t rest) {
  Datagram datagram(sizeof(Header) + rest);
  std::memcpy(datagram.data(), &header, sizeof(Header));
  return datagram;
}

/// `count` values from element 0 of an operation of 100.
Header values_header(std::uint16_t count, Type type = Type::kData) {
  Header header = make_header(type);
  header.fingerprint = Be64{fingerprint({.length = 100})};
  header.count = Be16{count};
  return header;
}

TEST(Packet, WellFormedPacketsOfEveryTypePass) {
  EXPECT_EQ(validate(make_datagram(values_header(100), 100)), Reject::kNone);
  EXPECT_EQ(validate(make_datagram(values_header(1, Type::kResult), 1)), Reject::kNone);
  for (const Type type : kControlTypes) {
    EXPECT_EQ(validate(make_datagram(make_header(type), body_size(type))), Reject::kNone)
        << to_string(type);
    EXPECT_EQ(validate(make_datagram(make_header(type), body_size(type) + 999)), Reject::kNone)
        << to_string(type) << " may be padded";
  }
}

TEST(Packet, EveryTruncationIsRejectedWithoutReadingBeyondIt) {
  for (const Type type : kControlTypes) {
    const Datagram whole = make_datagram(make_header(type), body_size(type));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      // On the heap at its exact size, so that a sanitiser sees any read beyond.
      const auto cut = std::make_unique<std::byte[]>(size);
      std::memcpy(cut.get(), whole.data(), size);
      EXPECT_EQ(validate({cut.get(), size}), Reject::kTooShort) << to_string(type) << size;
    }
  }
  const Datagram whole = make_datagram(values_header(100), 100);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = std::make_unique<std::byte[]>(size);
    std::memcpy(cut.get(), whole.data(), size);
    EXPECT_EQ(validate({cut.get(), size}),
              size < sizeof(Header) ? Reject::kTooShort : Reject::kBadLength)
        << size;
  }
}

TEST(Packet, ForeignMagicIsRejected) {
  Header header = values_header(1);
  header.magic = Be16{0x4142};
  EXPECT_EQ(validate(make_datagram(header, 1)), Reject::kBadMagic);
}

TEST(Packet, EveryOtherVersionIsRejected) {
  Header header = values_header(1);
  for (int version = 0; version < 256; ++version) {
    header.version = static_cast<std::uint8_t>(version);
    EXPECT_EQ(validate(make_datagram(header, 1)),
              version == kVersion ? Reject::kNone : Reject::kBadVersion);
  }
}

TEST(Packet, EveryUnknownTypeIsRejected) {
  std::set<int> known;
  for (int type = 0; type < 256; ++type) {
    const Header header = make_header(static_cast<Type>(type));
    if (validate(make_datagram(header, 100)) != Reject::kBadType) known.insert(type);
  }
  EXPECT_EQ(known, (std::set<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
}

TEST(Packet, ValuesMustFillTheDatagramExactly) {
  EXPECT_EQ(validate(make_datagram(values_header(10), 9)), Reject::kBadLength);
  EXPECT_EQ(validate(make_datagram(values_header(10), 11)), Reject::kBadLength);
  EXPECT_EQ(validate(make_datagram(values_header(10), 0)), Reject::kBadLength);
}

TEST(Packet, NoValuesOrTooManyAreRejected) {
  EXPECT_EQ(validate(make_datagram(values_header(0), 0)), Reject::kBadCount);
  Header header = values_header(kMaxValues);
  header.fingerprint = Be64{fingerprint({.length = kMaxLength})};
  EXPECT_EQ(validate(make_datagram(header, kMaxValues)), Reject::kNone);
  header.count = Be16{kMaxValues + 1};
  EXPECT_EQ(validate(make_datagram(header, kMaxValues + 1)), Reject::kBadCount);
}

TEST(Packet, ControlPacketsCarryNoValues) {
  for (const Type type : kControlTypes) {
    Header header = make_header(type);
    header.count = Be16{1};
    EXPECT_EQ(validate(make_datagram(header, body_size(type) + 1)), Reject::kBadCount)
        << to_string(type);
  }
}

TEST(Packet, EveryOtherCodecIsRejected) {
  Header header = values_header(1);
  for (int other = 1; other < 16; ++other) {
    header.flags = static_cast<std::uint8_t>(other << 4);
    EXPECT_EQ(validate(make_datagram(header, 1)), Reject::kBadCodec) << other;
  }
}

TEST(Packet, AChunkOutsideItsOperationIsRejected) {
  Header header = values_header(10);
  header.element = Be64{90};
  EXPECT_EQ(validate(make_datagram(header, 10)), Reject::kNone);
  for (const std::uint64_t element :
       {std::uint64_t{91}, std::uint64_t{100}, std::uint64_t{101}, ~std::uint64_t{0},
        ~std::uint64_t{0} - 9, std::uint64_t{1} << 56}) {
    header.element = Be64{element};
    EXPECT_EQ(validate(make_datagram(header, 10)), Reject::kBadOperation) << element;
  }
  header = values_header(1);
  header.fingerprint = Be64{fingerprint({.length = 0})};
  EXPECT_EQ(validate(make_datagram(header, 1)), Reject::kBadOperation);
}

TEST(Packet, AuthenticatedPacketsAreRejectedWhereNoKeyIsConfigured) {
  Header header = values_header(1);
  header.flags = kFlagAuthenticated;
  EXPECT_EQ(validate(make_datagram(header, 1)), Reject::kUnauthenticated);
  EXPECT_EQ(validate(make_datagram(header, 1 + kTrailerBytes)), Reject::kUnauthenticated);
}

TEST(Packet, WithKeysAnAuthenticatedPacketIsAsLongAsItsTrailerMakesIt) {
  Header header = values_header(10);
  header.flags = kFlagAuthenticated;
  EXPECT_EQ(validate(make_datagram(header, 10 + kTrailerBytes), Keys::kSome), Reject::kNone);
  EXPECT_EQ(validate(make_datagram(header, 10), Keys::kSome), Reject::kTooShort);
  EXPECT_EQ(validate(make_datagram(header, 9 + kTrailerBytes), Keys::kSome), Reject::kBadLength);
  EXPECT_EQ(validate(make_datagram(header, 11 + kTrailerBytes), Keys::kSome), Reject::kBadLength);

  Header heartbeat = make_header(Type::kHeartbeat);
  heartbeat.flags = kFlagAuthenticated;
  EXPECT_EQ(validate(make_datagram(heartbeat, kTrailerBytes), Keys::kSome), Reject::kNone);
  EXPECT_EQ(validate(make_datagram(heartbeat, kTrailerBytes - 1), Keys::kSome), Reject::kTooShort);
}

TEST(Packet, WhatNamesAnInstanceNeedsRoomForAProof) {
  Header header = make_header(Type::kHello);
  header.flags = kFlagAuthenticated;
  const std::size_t least = sizeof(HelloBody) + sizeof(Proof) + kTrailerBytes;
  auto hello = [&](std::size_t rest, std::uint64_t instance) {
    auto datagram = make_datagram(header, rest);
    const HelloBody body{Be64{instance}};
    std::memcpy(datagram.data() + sizeof(Header), &body, sizeof(body));
    return datagram;
  };
  EXPECT_EQ(validate(hello(least, 5), Keys::kSome), Reject::kNone);
  EXPECT_EQ(validate(hello(least - 1, 5), Keys::kSome), Reject::kTooShort);
  EXPECT_EQ(validate(hello(least - sizeof(Proof), 0), Keys::kSome), Reject::kNone);
  EXPECT_EQ(instance_of(header, hello(least, 5)), 5U);
}

TEST(Packet, RandomBytesNeverPassWithoutBeingWellFormed) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    Datagram datagram(random() % 200);
    for (std::byte& byte : datagram) byte = static_cast<std::byte>(random());
    // Let most get past the first checks.
    if (datagram.size() >= sizeof(Header)) {
      const Header valid = values_header(static_cast<std::uint16_t>(random() % 160));
      std::memcpy(datagram.data(), &valid, i % 3 == 0 ? 3 : 4);
      if (i % 2 == 0) datagram[43] = std::byte{0};
      if (i % 5 == 0) std::memcpy(datagram.data() + 24, &valid.element, 18);
    }
    if (validate(datagram) != Reject::kNone) continue;
    const Header header = read_header(datagram);
    ASSERT_EQ(header.magic.value(), kMagic);
    ASSERT_EQ(codec(header), Codec::kNat8);
    if (header.type == Type::kPartial) {
      ASSERT_EQ(payload(datagram).size() + rank_set(datagram).size() + sizeof(Header),
                datagram.size());
    } else if (header.type == Type::kData || header.type == Type::kResult) {
      ASSERT_EQ(payload(datagram).size() + sizeof(Header), datagram.size());
    } else {
      ASSERT_GE(datagram.size(), sizeof(Header) + body_size(header.type));
    }
  }
}

TEST(Packet, PayloadIsTheValuesAfterTheHeader) {
  Datagram datagram = make_datagram(values_header(3), 3);
  datagram[44] = std::byte{7};
  datagram[46] = std::byte{9};
  ASSERT_EQ(payload(datagram).size(), 3U);
  EXPECT_EQ(payload(datagram)[0], 7);
  EXPECT_EQ(payload(datagram)[2], 9);
}

TEST(Packet, ValuesAPacketFollowFromTheMtu) {
  EXPECT_EQ(values_for_mtu(1500), 1408U);
  EXPECT_EQ(values_for_mtu(9000), 8832U);
  EXPECT_EQ(values_for_mtu(65'535), kMaxValues);
  EXPECT_EQ(values_for_mtu(576), 384U);
  EXPECT_EQ(values_for_mtu(kIpUdpBytes + sizeof(Header) + kTrailerBytes + 128), 128U);
  EXPECT_EQ(values_for_mtu(kIpUdpBytes + sizeof(Header) + kTrailerBytes + 127), 0U);
  EXPECT_EQ(values_for_mtu(0), 0U);
  for (std::size_t mtu = 300; mtu <= 9000; ++mtu) {
    EXPECT_LE(kIpUdpBytes + datagram_size(values_for_mtu(mtu)), mtu);
  }
}

TEST(Packet, APartialResultEndsWithASetOfRanks) {
  const Header header = values_header(3, Type::kPartial);
  EXPECT_EQ(validate(make_datagram(header, 3)), Reject::kBadLength);
  EXPECT_EQ(validate(make_datagram(header, 3 + 65)), Reject::kBadLength);
  Datagram datagram = make_datagram(header, 3 + 2);
  datagram[47] = std::byte{0x81};
  datagram[48] = std::byte{0x02};
  ASSERT_EQ(validate(datagram), Reject::kNone);
  EXPECT_EQ(payload(datagram).size(), 3U);
  const auto ranks = rank_set(datagram);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(count_ranks(ranks, 16), 3U);
  EXPECT_EQ(count_ranks(ranks, 10), 3U);
  EXPECT_EQ(count_ranks(ranks, 9), 0U) << "rank 9 is not of that world";
  EXPECT_EQ(count_ranks(ranks, 8), 0U) << "too long";
  EXPECT_EQ(count_ranks(ranks, 17), 0U) << "too short";
  for (std::size_t rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(holds(ranks, rank), rank == 0 || rank == 7 || rank == 9) << rank;
  }
  // The trailer is not part of the set.
  Header sealed = header;
  sealed.flags |= kFlagAuthenticated;
  datagram = make_datagram(sealed, 3 + 1 + sizeof(Trailer));
  ASSERT_EQ(validate(datagram, Keys::kSome), Reject::kNone);
  EXPECT_EQ(rank_set(datagram).size(), 1U);
}

TEST(Packet, DatagramsWithASetOfRanksAreNoLongerThanThePathCarries) {
  for (const Keys keys : {Keys::kNone, Keys::kSome}) {
    for (std::size_t world = 1; world <= kMaxPartialWorld; ++world) {
      for (const std::size_t values : {128U, 384U, 1408U, 8832U}) {
        const std::size_t fewer = partial_values(values, world, keys);
        EXPECT_EQ(fewer % kValuesMultiple, 0U);
        EXPECT_GE(fewer + 128, values);
        if (fewer == 0) continue;
        EXPECT_LE(partial_datagram_size(fewer, world, keys), datagram_size(values));
      }
    }
  }
  EXPECT_EQ(partial_values(1408, 161, Keys::kNone), 1280U);
}

TEST(Packet, HeadersPrintEveryFieldThatTellsPacketsApart) {
  Header header = values_header(1408);
  header.job = Be32{7};
  header.epoch = Be32{3};
  header.rank = Be16{2};
  header.slot = Be16{5};
  header.sequence = Be32{4'294'967'045};
  header.element = Be64{1408};
  header.shift = -3;
  EXPECT_EQ(to_string(header),
            "DATA job 7 epoch 3 rank 2 slot 5 seq 4294967045 op 0 element 1408 count 1408 shift -3 "
            "flags 0x00");
}

TEST(Packet, EveryNumberOfAnEnumerationHasItsOwnName) {
  std::set<std::string_view> names;
  for (std::uint8_t i = 1; i <= 15; ++i) names.insert(to_string(static_cast<Type>(i)));
  EXPECT_EQ(names.size(), 15U);
  names.clear();
  for (std::uint8_t i = 0; i < kRejects; ++i) names.insert(to_string(static_cast<Reject>(i)));
  EXPECT_EQ(names.size(), kRejects);
  names.clear();
  for (std::uint8_t i = 1; i <= 22; ++i) names.insert(to_string(static_cast<RefuseReason>(i)));
  EXPECT_EQ(names.size(), 22U);
  names.clear();
  for (std::uint8_t i = 1; i <= 5; ++i) names.insert(to_string(static_cast<AbortReason>(i)));
  EXPECT_EQ(names.size(), 5U);
  EXPECT_EQ(to_string(static_cast<Type>(200)), "unknown type");
  EXPECT_EQ(to_string(static_cast<Reject>(200)), "unknown reject");
  EXPECT_EQ(to_string(static_cast<RefuseReason>(200)), "unknown reason");
  EXPECT_EQ(to_string(static_cast<AbortReason>(200)), "unknown reason");
}

TEST(Packet, FingerprintsLoseNothing) {
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{215'370}, kMaxLength}) {
    for (const DataType type :
         {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBfloat16}) {
      for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage,
                                        Reduction::kPartialSum, Reduction::kPartialAverage}) {
        const Operation operation{.length = length, .type = type, .reduction = reduction};
        EXPECT_EQ(from_fingerprint(fingerprint(operation)), operation);
      }
    }
  }
  EXPECT_EQ(to_string(Operation{.length = 215'370}), "sum of 215370 float32");
  EXPECT_EQ(to_string(Operation{
                .length = 3, .type = DataType::kBfloat16, .reduction = Reduction::kAverage}),
            "average of 3 bfloat16");
  EXPECT_EQ(to_string(from_fingerprint(~std::uint64_t{0})),
            "reduction 15 of 72057594037927935 type 15");
}

TEST(Packet, EndpointsPrintAsAddressAndPort) {
  EXPECT_EQ(to_string(Endpoint{.address = 0x0A000001, .port = 4790}), "10.0.0.1:4790");
  EXPECT_EQ(to_string(Endpoint{.address = 0xFFFFFFFF, .port = 65535}), "255.255.255.255:65535");
}

TEST(BigEndian, BytesStandMostSignificantFirst) {
  const Be32 value{0x01020304};
  const std::uint8_t expected[] = {1, 2, 3, 4};
  EXPECT_EQ(std::memcmp(&value, expected, 4), 0);
  EXPECT_EQ(value.value(), 0x01020304U);
  EXPECT_EQ(Be64{0xFFFF'FFFF'0000'0001}.value(), 0xFFFF'FFFF'0000'0001);
  EXPECT_EQ(Be16{0x8001}.value(), 0x8001);
}

}  // namespace
}  // namespace natagg::proto
