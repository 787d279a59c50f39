// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A stream that gets results without ranks that were late: what becomes of the values, what it
// reports, and what it tells the next aggregator when one is lost.
#include <gtest/gtest.h>

#include "stream_fixture.hpp"

namespace natagg::test {
namespace {

using proto::JoinBody;
using proto::Reduction;
using proto::SessionState;
using worker::PartialReport;

constexpr std::uint8_t kOne = 50;

class PartialTest : public StreamFixture {
 protected:
  static StreamConfig terms() {
    StreamConfig with = config();
    with.straggler_deadline = 20 * kMs;
    return with;
  }

  void connect_partially() {
    start(terms());
    connect();
  }

  /// The chunk's result is `value` everywhere, of the ranks of bits `ranks`.
  void give_partial(const Sent& data, std::uint8_t value, std::uint8_t ranks,
                    std::uint32_t epoch = kEpoch) {
    Header h = data.header;
    h.type = Type::kPartial;
    h.epoch = Be32{epoch};
    h.rank = Be16{proto::kAggregatorRank};
    Packet packet = value_packet(h, std::vector(data.header.count.value(), value));
    packet.push_back(std::byte{ranks});
    stream->receive(packet, data.to, now);
  }

  void lose_session() {
    proto::AbortBody body{};
    body.reason = proto::AbortReason::kUnknownSession;
    give_abort(body);
  }

  void resume(std::uint32_t epoch, std::uint32_t first) {
    proto::WelcomeBody body = welcome_body(SessionState::kReady);
    body.first_sequence = Be32{first};
    stream->receive(control_packet(header(Type::kWelcome, epoch), body), kAggregator, now);
  }
};

TEST_F(PartialTest, JoinsWithTheDeadlineAndMoreThanHalfAsTheQuorum) {
  start(terms());
  transmit();
  offer(1, kValues);
  auto body = proto::read_body<JoinBody>(transmit(Type::kJoin).at(0).packet);
  EXPECT_EQ(body.stragglers.value(), 20);
  EXPECT_EQ(body.quorum.value(), 2);
  StreamConfig with = terms();
  with.quorum = 3;
  start(with);
  transmit();
  offer(1, kValues);
  body = proto::read_body<JoinBody>(transmit(Type::kJoin).at(0).packet);
  EXPECT_EQ(body.quorum.value(), 3);
  start(config());
  transmit();
  offer(1, kValues);
  body = proto::read_body<JoinBody>(transmit(Type::kJoin).at(0).packet);
  EXPECT_EQ(body.stragglers.value(), 0);
  EXPECT_EQ(body.quorum.value(), 0);
}

TEST_F(PartialTest, JoinsWithAsManyValuesAsLeaveRoomForTheRanks) {
  StreamConfig with = terms();
  with.world = 512;
  with.values = 0;
  start(with);
  transmit();
  offer(1, 1408);
  const auto joins = transmit(Type::kJoin);
  ASSERT_EQ(joins.size(), 1U);
  EXPECT_EQ(proto::read_body<JoinBody>(joins[0].packet).values.value(), 1280);
  EXPECT_EQ(joins[0].packet.size(), proto::partial_datagram_size(1280, 512, proto::Keys::kNone));
}

TEST_F(PartialTest, ConfigurationsOutOfRangeAreRefusedByName) {
  const auto problem = [&](StreamConfig with) {
    try {
      start(with);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  StreamConfig with = terms();
  with.world = 513;
  EXPECT_EQ(problem(with), "world is 513, a job with partial results has at most 512 ranks");
  with = terms();
  with.quorum = 4;
  EXPECT_EQ(problem(with), "quorum is 4, must be at most the world size 3");
  with = terms();
  with.straggler_deadline = 1;
  EXPECT_EQ(problem(with), "straggler_deadline must be 1 to 65,535 whole milliseconds");
}

TEST_F(PartialTest, ASumStandsForAllRanksAndAnAverageIsOverThoseThatAreThere) {
  connect_partially();
  submit(5, 1000 * kMs, Reduction::kPartialSum);
  give_partial(transmit(Type::kData).at(0), kOne, 0b101);
  EXPECT_EQ(out, std::vector(5, 3.0F / 2.0F));
  submit(5, 1000 * kMs, Reduction::kPartialAverage);
  give_partial(transmit(Type::kData).at(0), kOne + 1, 0b101);
  EXPECT_EQ(out, std::vector(5, 1.0F));
}

TEST_F(PartialTest, ReportsWhichChunksLackWhichRanksAndTheVariance) {
  connect_partially();
  const std::uint64_t id = submit(3 * kValues + 128, 1000 * kMs, Reduction::kPartialSum);
  const auto chunks = transmit(Type::kData);
  ASSERT_EQ(chunks.size(), 4U);
  give_partial(chunks[0], kOne, 0b101);
  give_result(chunks[1]);
  give_partial(chunks[2], kOne, 0b100);
  EXPECT_FALSE(stream->poll_completion());
  give_result(chunks[3]);
  const auto completion = stream->poll_completion();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->id, id);
  const PartialReport& report = completion->partial;
  EXPECT_EQ(report.chunks, 4U);
  EXPECT_EQ(report.partial_chunks, 2U);
  EXPECT_EQ(report.least_ranks, 1);
  EXPECT_EQ(report.missing[0], 0b011U);
  EXPECT_DOUBLE_EQ(report.variance_inflation, (1.5 + 1 + 3 + 1) / 4);
}

TEST_F(PartialTest, AWholeOperationReportsThatNothingIsMissing) {
  connect_partially();
  submit(kValues, 1000 * kMs, Reduction::kPartialSum);
  give_result(transmit(Type::kData).at(0));
  const auto completion = stream->poll_completion();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->partial.partial_chunks, 0U);
  EXPECT_EQ(completion->partial.least_ranks, 3);
  EXPECT_EQ(completion->partial.missing[0], 0U);
  EXPECT_EQ(completion->partial.variance_inflation, 1.0);
}

TEST_F(PartialTest, WhatNobodyAskedForIsRejected) {
  connect_partially();
  submit(5);
  const auto whole = transmit(Type::kData);
  give_partial(whole.at(0), kOne, 0b101);  // the operation does not take it
  submit(5, 1000 * kMs, Reduction::kPartialSum);
  const auto partial = transmit(Type::kData);
  give_partial(partial.at(0), kOne, 0);       // of nobody
  give_partial(partial.at(0), kOne, 0b1001);  // of a rank that there is not
  give_partial(partial.at(0), 0x7F, 0b101);   // of no nat8 byte
  EXPECT_EQ(stream->stats().rejected_packets, 4U);
  EXPECT_FALSE(stream->poll_completion());
  start(config());
  connect();
  submit(5, 1000 * kMs, Reduction::kPartialSum);
  give_partial(transmit(Type::kData).at(0), kOne, 0b101);  // the job does not
  EXPECT_EQ(stream->stats().rejected_packets, 1U);
}

TEST_F(PartialTest, AChunkThatIsHeldBackIsAskedForAgainAndNamesTheRankInTheError) {
  connect_partially();
  submit(5, 200 * kMs, Reduction::kPartialSum);
  const auto first = transmit(Type::kData);
  give_pending(first.at(0), 2, 0);
  // At an even pace, whatever the time-outs are, for as long as it is held back.
  for (int repetition = 0; repetition < 10; ++repetition) {
    now += 5 * kMs - 1;
    EXPECT_TRUE(transmit(Type::kData).empty());
    now += 1;
    const auto again = transmit(Type::kData);
    ASSERT_EQ(again.size(), 1U);
    give_pending(again[0], 2, 0);
  }
  now += 160 * kMs;
  transmit();
  EXPECT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().rank, 2);
  EXPECT_NE(stream->failure().message.find("held back for rank 2"), std::string::npos)
      << stream->failure().message;
}

TEST_F(PartialTest, APartialResultIsWhatIsSentAgainWhenTheAggregatorIsLost) {
  connect_partially();
  submit(3 * kValues, 10'000 * kMs, Reduction::kPartialSum);
  const auto chunks = transmit(Type::kData);
  ASSERT_EQ(chunks.size(), 3U);
  give_result(chunks[0]);
  give_partial(chunks[2], kOne, 0b101);
  lose_session();
  const auto joins = transmit(Type::kJoin);
  ASSERT_EQ(joins.size(), 1U);
  const auto body = proto::read_body<JoinBody>(joins[0].packet);
  EXPECT_EQ(body.resume.value(), kFirst + 1);
  EXPECT_EQ(body.held.value(), 2) << "chunk 2 is the last with a result";

  resume(kEpoch + 1, kFirst);
  const auto again = transmit();
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].header.type, Type::kData);
  EXPECT_EQ(again[1].header.type, Type::kData);
  ASSERT_EQ(again[2].header.type, Type::kPartial);
  EXPECT_EQ(again[2].header.epoch.value(), kEpoch + 1);
  EXPECT_EQ(again[2].header.fingerprint.value(), chunks[2].header.fingerprint.value());
  EXPECT_EQ(proto::payload(again[2].packet)[0], kOne);
  EXPECT_EQ(proto::rank_set(again[2].packet)[0], 0b101);

  // The same again changes nothing; the chunk that was missing ends the operation.
  give_partial(again[2], kOne, 0b101, kEpoch + 1);
  give_result(again[0]);
  give_partial(again[1], kOne + 1, 0b110, kEpoch + 1);
  const auto completion = stream->poll_completion();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, NATAGG_OK);
  EXPECT_EQ(completion->partial.partial_chunks, 2U);
  EXPECT_EQ(out[2 * kValues], 1.5F);
}

TEST_F(PartialTest, AnAnswerThatDiffersFromAnEarlierSessionsIsAnErrorAndNeverSilent) {
  const auto differ = [&](bool was_partial, std::uint8_t value, std::uint8_t ranks) {
    connect_partially();
    submit(2 * kValues, 10'000 * kMs, Reduction::kPartialSum);
    const auto chunks = transmit(Type::kData);
    if (was_partial) {
      give_partial(chunks.at(0), kOne, 0b101);
    } else {
      give_result(chunks.at(0));
    }
    lose_session();
    transmit();
    resume(kEpoch + 1, kFirst);
    const auto again = transmit();
    if (ranks == 0) {
      Header h = again.at(0).header;
      h.type = Type::kResult;
      stream->receive(value_packet(h, std::vector<std::uint8_t>(kValues, value)), kAggregator, now);
    } else {
      give_partial(again.at(0), value, ranks, kEpoch + 1);
    }
    if (stream->state() != Stream::State::kFailed) return std::string();
    EXPECT_EQ(stream->failure().status, NATAGG_AGGREGATOR_LOST);
    return stream->failure().message;
  };
  EXPECT_EQ(differ(true, kOne, 0b101), "");
  EXPECT_NE(differ(true, kOne + 1, 0b101).find("answers otherwise: operation 0"),
            std::string::npos);
  EXPECT_NE(differ(true, kOne, 0b111), "");
  EXPECT_NE(differ(true, kOne, 0), "");
  EXPECT_NE(differ(false, kOne, 0b101), "");
  EXPECT_EQ(differ(false, kOne, 0), "");
}

}  // namespace
}  // namespace natagg::test
