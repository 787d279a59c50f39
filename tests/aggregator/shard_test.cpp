// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a shard does with DATA: the life of a slot, one packet at a time.
#include <gtest/gtest.h>

#include "shard_fixture.hpp"

namespace natagg::test {
namespace {

using Values = std::vector<std::uint8_t>;

// Codes 50, 51, 52 are 1, 2, 4.
constexpr std::uint8_t kOne = 50;
constexpr std::uint8_t kTwo = 51;
constexpr std::uint8_t kMinusOne = 50 | nat8::kSign;

class ShardTest : public ShardFixture {
 protected:
  void SetUp() override { epoch = join_all({}); }

  DataSpec from(std::uint16_t rank, std::uint32_t chunk) {
    return {.rank = rank, .chunk = chunk, .epoch = epoch};
  }

  std::uint32_t epoch = 0;
};

TEST_F(ShardTest, FollowsAMemberToAnotherInterface) {
  constexpr std::uint16_t kOtherInterface = 9;
  Peer moved = peer_of(0);
  moved.interface = kOtherInterface;
  EXPECT_TRUE(give(value_packet(data_header(from(0, 0)), Values{kOne}), moved).empty());
  const auto results = data(from(1, 0), {kOne});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].to.interface, kOtherInterface);
  EXPECT_EQ(results[1].to.interface, peer_of(1).interface);
}

TEST_F(ShardTest, AnswersTheLastContributionWithTheSumToEveryRank) {
  EXPECT_TRUE(data(from(0, 0), {kOne, kOne, nat8::kZero}).empty());
  const auto results = data(from(1, 0), {kOne, kMinusOne, kTwo});
  ASSERT_EQ(results.size(), 2U);
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(results[rank].to.endpoint, peer_of(rank).endpoint);
    EXPECT_EQ(results[rank].to.link, peer_of(rank).link);
    EXPECT_EQ(results[rank].to.interface, peer_of(rank).interface);
    EXPECT_EQ(results[rank].values(), (Values{kTwo, nat8::kZero, kTwo}));
  }
  EXPECT_EQ(count(Counter::kContributions), 2U);
  EXPECT_EQ(count(Counter::kResults), 1U);
  EXPECT_EQ(count(Counter::kValuesZero), 1U);
}

TEST_F(ShardTest, FillsEveryHeaderFieldOfAResult) {
  Header header = data_header(from(0, 1));
  header.element = Be64{256};
  header.operation = Be32{0xFFFF'FFFF};
  give(value_packet(header, Values{kOne}), peer_of(0));
  header.rank = Be16{1};
  const auto results = give(value_packet(header, Values{kOne}), peer_of(1));
  ASSERT_EQ(results.size(), 2U);
  const Header& result = results[0].header;
  EXPECT_EQ(result.magic.value(), proto::kMagic);
  EXPECT_EQ(result.version, proto::kVersion);
  EXPECT_EQ(result.type, Type::kResult);
  EXPECT_EQ(result.job.value(), kJob);
  EXPECT_EQ(result.epoch.value(), epoch);
  EXPECT_EQ(result.rank.value(), proto::kAggregatorRank);
  EXPECT_EQ(result.slot.value(), (kFirst + 1) % kWindow);
  EXPECT_EQ(result.sequence.value(), kFirst + 1);
  EXPECT_EQ(result.operation.value(), 0xFFFF'FFFFU);
  EXPECT_EQ(result.element.value(), 256U);
  EXPECT_EQ(result.fingerprint, header.fingerprint);
  EXPECT_EQ(result.count.value(), 1U);
  EXPECT_EQ(result.shift, 0);
  EXPECT_EQ(result.flags, proto::kFlagNearest);
}

TEST_F(ShardTest, AnswersADuplicateOfAnOpenChunkWithWhoIsMissing) {
  data(from(0, 0), {kOne});
  const auto answers = data(from(0, 0), {kOne});
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].to.endpoint, peer_of(0).endpoint);
  EXPECT_EQ(answers[0].header.type, Type::kPending);
  EXPECT_EQ(answers[0].header.sequence.value(), kFirst);
  EXPECT_EQ(answers[0].body<proto::PendingBody>().missing.value(), 1U);
  EXPECT_EQ(answers[0].body<proto::PendingBody>().missing_count.value(), 1U);
  EXPECT_EQ(count(Counter::kDuplicateOpen), 1U);
  EXPECT_EQ(data(from(1, 0), {kOne})[0].values(), Values{kTwo});
}

TEST_F(ShardTest, SendsTheCachedResultOfAFinishedChunkToTheAskerAlone) {
  data(from(0, 0), {kOne});
  data(from(1, 0), {kOne});
  const auto again = data(from(1, 0), {kTwo});  // other values must not be added
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].to.endpoint, peer_of(1).endpoint);
  EXPECT_EQ(again[0].values(), Values{kTwo});
  EXPECT_EQ(count(Counter::kCachedResults), 1U);
  EXPECT_EQ(count(Counter::kResults), 1U);
}

TEST_F(ShardTest, KeepsTheResultOfTheVersionBeforeWhileTheNextIsOpen) {
  for (std::uint16_t rank : kBothRanks) data(from(rank, 0), {kOne});
  data(from(0, kWindow), {kMinusOne});  // rank 0 has the result, rank 1 lost it
  const auto again = data(from(1, 0), {kOne});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].header.sequence.value(), kFirst);
  EXPECT_EQ(again[0].values(), Values{kTwo});
  EXPECT_EQ(data(from(1, kWindow), {kMinusOne})[0].values(), Values{kTwo | nat8::kSign});
}

TEST_F(ShardTest, CrossesTheSequenceWrap) {
  for (std::uint32_t chunk = 0; chunk < 20; ++chunk) {
    data(from(0, chunk), {kOne});
    const auto results = data(from(1, chunk), {kOne});
    ASSERT_EQ(results.size(), 2U) << chunk;
    EXPECT_EQ(results[0].header.sequence.value(), kFirst + chunk);
  }
}

TEST_F(ShardTest, DropsAChunkOlderThanBothVersions) {
  for (std::uint32_t chunk : {0U, kWindow + 0U, 2U * kWindow}) {
    for (std::uint16_t rank : kBothRanks) data(from(rank, chunk), {kOne});
  }
  EXPECT_TRUE(data(from(0, 0), {kOne}).empty());
  EXPECT_EQ(count(Counter::kStaleSequence), 1U);
}

TEST_F(ShardTest, DropsAChunkBeforeTheSessionsFirst) {
  EXPECT_TRUE(data(from(0, static_cast<std::uint32_t>(-4)), {kOne}).empty());
  EXPECT_EQ(count(Counter::kStaleSequence), 1U);
}

TEST_F(ShardTest, DropsAChunkAheadOfAnOpenOne) {
  data(from(0, 0), {kOne});
  EXPECT_TRUE(data(from(0, kWindow), {kOne}).empty());
  EXPECT_TRUE(data(from(0, 5 * kWindow), {kOne}).empty());
  EXPECT_EQ(count(Counter::kEarlySequence), 2U);
  EXPECT_EQ(data(from(1, 0), {kOne})[0].values(), Values{kTwo});
}

TEST_F(ShardTest, RefusesASlotThatIsNotTheSequences) {
  for (std::uint16_t slot : {std::uint16_t{3}, kWindow, std::uint16_t{0xFFFF}}) {
    Header header = data_header(from(0, 0));
    header.slot = Be16{slot};
    EXPECT_TRUE(give(value_packet(header, Values{kOne}), peer_of(0)).empty());
  }
  EXPECT_EQ(count(Counter::kBadSlot), 3U);
}

TEST_F(ShardTest, RefusesAPacketWholeForOneMalformedByte) {
  for (std::uint8_t bad : Values{0x3D, 0x3E, 0x3F, 0x43, 0x7F, 0xC0, 0xC2, 0xFF}) {
    EXPECT_TRUE(data(from(0, 0), {kOne, bad}).empty());
  }
  EXPECT_EQ(count(Counter::kMalformedByte), 8U);
  data(from(0, 0), {kOne, kOne});
  EXPECT_EQ(data(from(1, 0), {kOne, kOne})[0].values(), (Values{kTwo, kTwo}));
}

TEST_F(ShardTest, RefusesMoreValuesThanAgreed) {
  EXPECT_TRUE(data(from(0, 0), Values(kValues + 1, kOne)).empty());
  EXPECT_EQ(count(Counter::kBadTerms), 1U);
}

TEST_F(ShardTest, RefusesAnotherShiftOrRounding) {
  Header header = data_header(from(0, 0));
  header.shift = 1;
  EXPECT_TRUE(give(value_packet(header, Values{kOne}), peer_of(0)).empty());
  header.shift = 0;
  header.flags = 0;
  EXPECT_TRUE(give(value_packet(header, Values{kOne}), peer_of(0)).empty());
  EXPECT_EQ(count(Counter::kBadTerms), 2U);
}

TEST_F(ShardTest, RefusesARankOutsideTheWorldAndAStrangersAddress) {
  EXPECT_TRUE(give(value_packet(data_header(from(2, 0)), Values{kOne}), peer_of(2)).empty());
  EXPECT_EQ(count(Counter::kBadRank), 1U);
  EXPECT_TRUE(give(value_packet(data_header(from(0, 0)), Values{kOne}), peer_of(1)).empty());
  EXPECT_EQ(count(Counter::kWrongSource), 1U);
}

TEST_F(ShardTest, NeverAddsAPacketOfAnotherEpochOrJob) {
  data(from(0, 0), {kOne});
  DataSpec other = from(1, 0);
  other.epoch = epoch - 1;
  const auto stale = data(other, {kOne});
  ASSERT_EQ(stale.size(), 1U);
  EXPECT_EQ(stale[0].header.type, Type::kAbort);
  EXPECT_EQ(stale[0].header.epoch.value(), epoch - 1);  // so that a live worker ignores it
  EXPECT_EQ(stale[0].body<proto::AbortBody>().reason, proto::AbortReason::kSuperseded);
  other = from(1, 0);
  other.job = kJob + 1;
  const auto unknown = data(other, {kOne});
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_EQ(unknown[0].body<proto::AbortBody>().reason, proto::AbortReason::kUnknownSession);
  EXPECT_EQ(count(Counter::kStaleEpoch), 1U);
  EXPECT_EQ(count(Counter::kUnknownSession), 1U);
}

TEST_F(ShardTest, TellsEveryRankWhoSubmittedWhatWhenOperationsDiffer) {
  data(from(0, 0), {kOne});
  DataSpec other = from(1, 0);
  other.length = 2000;
  const auto aborts = data(other, {kOne});
  ASSERT_EQ(aborts.size(), 2U);
  for (const Sent& abort : aborts) {
    EXPECT_EQ(abort.header.type, Type::kAbort);
    const auto body = abort.body<proto::AbortBody>();
    EXPECT_EQ(body.reason, proto::AbortReason::kMismatch);
    EXPECT_EQ(body.rank.value(), 1U);
    EXPECT_EQ(body.other_rank.value(), 0U);
    EXPECT_EQ(proto::from_fingerprint(body.fingerprint.value()).length, 2000U);
    EXPECT_EQ(proto::from_fingerprint(body.other_fingerprint.value()).length, 1000U);
  }
  EXPECT_EQ(data(from(0, 1), {kOne})[0].header.type, Type::kAbort);
}

TEST_F(ShardTest, TreatsARankThatIsAnOperationAheadAsAMismatch) {
  data(from(0, 0), {kOne});
  DataSpec ahead = from(1, 0);
  ahead.operation = 1;
  const auto aborts = data(ahead, {kOne});
  ASSERT_EQ(aborts.size(), 2U);
  EXPECT_EQ(aborts[0].body<proto::AbortBody>().operation.value(), 1U);
  EXPECT_EQ(aborts[0].body<proto::AbortBody>().other_operation.value(), 0U);
}

TEST_F(ShardTest, LetsNanWinAndOppositeInfinitiesBecomeNan) {
  const Values first{nat8::kPositiveInf, nat8::kPositiveInf, nat8::kNan, kOne, nat8::kNegativeInf};
  const Values second{kOne, nat8::kNegativeInf, nat8::kPositiveInf, nat8::kNan, nat8::kNegativeInf};
  data(from(0, 0), first);
  const auto results = data(from(1, 0), second);
  EXPECT_EQ(results[0].values(),
            (Values{nat8::kPositiveInf, nat8::kNan, nat8::kNan, nat8::kNan, nat8::kNegativeInf}));
  EXPECT_NE(results[0].header.flags & proto::kFlagSpecials, 0);
  EXPECT_EQ(count(Counter::kValuesNan), 3U);
  EXPECT_EQ(count(Counter::kValuesInf), 2U);
  EXPECT_EQ(count(Counter::kValuesZero), 0U);
  // Nothing of it stays in the slot.
  for (std::uint16_t rank : kBothRanks) data(from(rank, kWindow), Values(5, kOne));
  EXPECT_EQ(data(from(0, kWindow), Values(5, kOne))[0].values(), Values(5, kTwo));
}

TEST_F(ShardTest, DropsWhatOnlyAggregatorsSend) {
  for (Type type :
       {Type::kOffer, Type::kWelcome, Type::kRefuse, Type::kProbe, Type::kPending, Type::kAbort}) {
    EXPECT_TRUE(
        give(control_packet(proto::make_header(type), proto::WelcomeBody{}), peer_of(0)).empty());
  }
  EXPECT_EQ(count(Counter::kUnexpectedType), 6U);
}

TEST_F(ShardTest, EchoesAHeartbeat) {
  Header header = proto::make_header(Type::kHeartbeat);
  header.job = Be32{kJob};
  header.epoch = Be32{epoch};
  header.rank = Be16{1};
  const auto echo = give(control_packet(header), peer_of(1));
  ASSERT_EQ(echo.size(), 1U);
  EXPECT_EQ(echo[0].header.type, Type::kHeartbeat);
  EXPECT_EQ(echo[0].header.epoch.value(), epoch);
  EXPECT_EQ(echo[0].header.rank.value(), 1U);
}

// 2^10 is 2^60 in a slot, so eight of them leave int64.
TEST_F(ShardFixture, AddsExactlyWhenEightWorkersSendTheLargestCode) {
  constexpr std::uint8_t kTop = 60;
  constexpr std::uint8_t kMinusTop = 60 | nat8::kSign;
  const std::uint32_t epoch = join_all({.world = 16});
  std::vector<Sent> results;
  for (std::uint16_t rank = 0; rank < 16; ++rank) {
    // Value 0 climbs to 8 * 2^60 and comes back to 0; 1 does so downwards; 2 ends at 2^60 less
    // the smallest code's 1; 3 stays at the top, 4 at the bottom.
    const bool first_half = rank < 8;
    results =
        data({.rank = rank, .epoch = epoch},
             {first_half ? kTop : kMinusTop, first_half ? kMinusTop : kTop,
              rank < 8 ? kTop : (rank < 15 ? kMinusTop : std::uint8_t{0x80}), kTop, kMinusTop});
  }
  ASSERT_EQ(results.size(), 16U);
  EXPECT_EQ(results[0].values(), (Values{nat8::kZero, nat8::kZero, kTop, kTop, kMinusTop}));
  EXPECT_EQ(count(Counter::kWideSlots), 1U);
  EXPECT_EQ(count(Counter::kValuesClipped), 2U);
}

TEST_F(ShardFixture, CompletesWithOneWorker) {
  const std::uint32_t epoch = join_all({.world = 1});
  const auto results = data({.epoch = epoch}, {kOne});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].values(), Values{kOne});
}

TEST_F(ShardFixture, KeepsTwoJobsApart) {
  const std::uint32_t one = join_all({});
  const std::uint32_t two = join_all({.job = kJob + 1});
  EXPECT_NE(one, two);
  data({.rank = 0, .epoch = one}, {kOne});
  data({.rank = 0, .epoch = two, .job = kJob + 1}, {kTwo});
  EXPECT_EQ(data({.rank = 1, .epoch = one}, {kMinusOne})[0].values(), Values{nat8::kZero});
  EXPECT_EQ(data({.rank = 1, .epoch = two, .job = kJob + 1}, {kTwo})[0].values(), Values{52});
  EXPECT_EQ(shard.usage().ready_sessions, 2U);
  EXPECT_EQ(shard.usage().open_slots, 0U);
}

}  // namespace
}  // namespace natagg::test
