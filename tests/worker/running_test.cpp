// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Operations on a connected stream: what is sent when, what is sent again, and how it ends.
#include <gtest/gtest.h>

#include "stream_fixture.hpp"

namespace natagg::test {
namespace {

class RunningTest : public StreamFixture {
 protected:
  std::vector<Sent> data() { return transmit(Type::kData); }

  void expect_completion(std::uint64_t id, natagg_status status) {
    const auto completion = stream->poll_completion();
    ASSERT_TRUE(completion.has_value());
    EXPECT_EQ(completion->id, id);
    EXPECT_EQ(completion->status, status);
  }
};

TEST_F(RunningTest, FillsEveryFieldOfData) {
  connect();
  submit(300);
  const auto sent = data();
  ASSERT_EQ(sent.size(), 3U);
  const Header& last = sent[2].header;
  EXPECT_EQ(last.job.value(), 7U);
  EXPECT_EQ(last.epoch.value(), kEpoch);
  EXPECT_EQ(last.rank.value(), 1U);
  EXPECT_EQ(last.sequence.value(), kFirst + 2);
  EXPECT_EQ(last.slot.value(), (kFirst + 2) % 8);
  EXPECT_EQ(last.operation.value(), 0U);
  EXPECT_EQ(last.element.value(), 256U);
  EXPECT_EQ(last.count.value(), 44U);
  EXPECT_EQ(last.fingerprint.value(), proto::fingerprint({.length = 300}));
  EXPECT_EQ(last.flags, proto::kFlagNearest);
  // Value 256 = 2^8 is code 58.
  EXPECT_EQ(proto::payload(sent[2].packet)[0], 58U);
}

TEST_F(RunningTest, CompletesWithTheDecodedResult) {
  connect();
  const std::uint64_t id = submit(129, 1000 * kMs, proto::Reduction::kAverage);
  for (const Sent& s : data()) give_result(s);
  expect_completion(id, NATAGG_OK);
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(out[64], 64.0F / 3.0F);
  EXPECT_EQ(out[128], 128.0F / 3.0F);
  EXPECT_FALSE(stream->poll_completion());
}

TEST_F(RunningTest, SpreadsChunksEvenlyOverShardsAcrossOperations) {
  connect(3);
  for (int i = 0; i < 6; ++i) submit(1);
  const auto sent = data();
  ASSERT_EQ(sent.size(), 6U);
  std::array<int, 3> share{};
  for (const Sent& s : sent) {
    ++share[s.to.port - kAggregator.port];
    EXPECT_EQ(s.header.operation.value() % 3, s.to.port - kAggregator.port + 0U);
  }
  EXPECT_EQ(share, (std::array{2, 2, 2}));
}

TEST_F(RunningTest, CompletesALengthOfZeroWithoutAPacket) {
  connect();
  const std::uint64_t id = submit(0);
  expect_completion(id, NATAGG_OK);
  EXPECT_TRUE(data().empty());
  submit(1);  // it has used an operation index all the same
  EXPECT_EQ(data()[0].header.operation.value(), 1U);
}

TEST_F(RunningTest, SendsAChunkOnlyAfterTheResultOfTheOneAWindowBefore) {
  connect();
  submit(20 * kValues);
  auto sent = data();
  ASSERT_EQ(sent.size(), 8U);
  EXPECT_TRUE(data().empty());
  give_result(sent[1]);  // not the oldest: the window does not move
  EXPECT_TRUE(data().empty());
  give_result(sent[0]);
  const auto next = data();
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[0].header.sequence.value(), kFirst + 8);
}

TEST_F(RunningTest, NeverHasMoreUnderWayThanReceiveBuffersHold) {
  StreamConfig with = config();
  with.in_flight = 3;
  start(with);
  connect();
  submit(20 * kValues);
  auto sent = data();
  EXPECT_EQ(sent.size(), 3U);
  give_result(sent[0]);
  EXPECT_EQ(data().size(), 1U);
}

TEST_F(RunningTest, SendsTheOldestAndTheLatestAgainAfterATimeOutAndWaitsTwiceAsLongEachTime) {
  connect();
  submit(8 * kValues);
  const auto sent = data();
  std::vector<Time> waits;
  for (int i = 0; i < 4; ++i) {
    const Time before = now;
    std::vector<Sent> again;
    while (again.empty()) {
      now += kMs;
      again = data();
    }
    // Whichever was sent longest ago, and last; the bytes are those of the first time.
    ASSERT_EQ(again.size(), 2U);
    EXPECT_EQ(again[0].packet, sent[static_cast<std::size_t>(i)].packet);
    EXPECT_EQ(again[1].packet, sent.back().packet);
    waits.push_back(now - before);
  }
  for (std::size_t i = 1; i < waits.size(); ++i) EXPECT_GE(waits[i], waits[i - 1]);
  EXPECT_EQ(stream->stats().retransmissions, 8U);
}

TEST_F(RunningTest, SendsAgainWhatTheAggregatorLacks) {
  connect();
  submit(8 * kValues);
  const auto sent = data();
  give_nack(sent[1], 0b1011);
  const auto again = data();
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].packet, sent[1].packet);
  EXPECT_EQ(again[1].packet, sent[2].packet);
  EXPECT_EQ(again[2].packet, sent[4].packet);
}

TEST_F(RunningTest, SendsNothingThatWasNotLostForANack) {
  connect();
  submit(6 * kValues);
  const auto sent = data();
  now += kMs;
  give_result(sent[0]);
  give_nack(sent[0], 1);                  // it is answered
  give_nack(sent[1], ~std::uint64_t{0});  // more than was sent
  EXPECT_EQ(data().size(), 5U);
  now += kMs / 2;
  give_nack(sent[1], 1);  // cannot know yet of the second copy
  EXPECT_TRUE(data().empty());
  now += kMs / 2;
  give_nack(sent[1], 1);
  EXPECT_EQ(data().size(), 1U);
}

TEST_F(RunningTest, SendsAChunkAgainWhoseResultIsOverdueWhenLaterOnesAreAnswered) {
  connect();
  submit(8 * kValues);
  const auto sent = data();
  give_result(sent[1]);
  give_result(sent[2]);
  EXPECT_TRUE(data().empty());
  give_result(sent[3]);
  const auto again = data();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].packet, sent[0].packet);
}

TEST_F(RunningTest, SendsNothingInVainWhileItWaitsForASlowRank) {
  connect();
  submit(8 * kValues);
  const auto sent = data();
  for (int ms = 0; ms < 200; ++ms) {  // rank 2 is stopped for 200 ms
    now += kMs;
    for (const Sent& again : data()) give_pending(again, 2);
  }
  const std::uint64_t in_the_pause = stream->stats().retransmissions;
  EXPECT_LE(in_the_pause, 6U);
  for (const Sent& s : sent) {
    give_result(s);
    EXPECT_TRUE(data().empty());
  }
  EXPECT_EQ(stream->stats().retransmissions, in_the_pause);
}

TEST_F(RunningTest, KeepsItsPaceAfterASlowRank) {
  StreamConfig with = config();
  with.window = 64;
  start(with);
  transmit();
  offer(1, kValues);
  transmit();
  proto::WelcomeBody body = welcome_body(proto::SessionState::kReady);
  body.window = Be16{64};
  welcome(body);
  submit(400 * kValues);
  std::vector<Sent> under_way = data();
  for (int i = 0; i < 200 && under_way.size() < 64; ++i) {
    give_result(under_way.front());
    under_way.erase(under_way.begin());
    for (const Sent& s : data()) under_way.push_back(s);
  }
  ASSERT_EQ(under_way.size(), 64U);
  for (int ms = 0; ms < 1500; ++ms) {
    now += kMs;
    for (const Sent& again : data()) give_pending(again, 2);
    stream->receive(control_packet(header(Type::kHeartbeat)), kAggregator, now);
  }
  std::size_t sent_on = 0;
  for (const Sent& s : under_way) {
    give_result(s);
    sent_on += data().size();
  }
  EXPECT_EQ(sent_on, 64U);
}

TEST_F(RunningTest, NamesTheMissingRankAndTheChunkWhenADeadlinePasses) {
  connect();
  const std::uint64_t id = submit(300, 100 * kMs);
  for (const Sent& s : data()) give_pending(s, 2);
  now += 100 * kMs;
  transmit();
  EXPECT_EQ(stream->state(), Stream::State::kFailed);
  EXPECT_EQ(stream->failure().status, NATAGG_TIMED_OUT);
  EXPECT_EQ(stream->failure().rank, 2);
  EXPECT_EQ(stream->failure().message,
            "operation 0 (sum of 300 float32) missed its deadline with 3 of 3 chunks to come: "
            "values 0 to 127 at aggregator 10.0.0.1:4790 wait for rank 2");
  expect_completion(id, NATAGG_TIMED_OUT);
}

TEST_F(RunningTest, SaysWhichAggregatorIsSilent) {
  connect();
  const std::uint64_t id = submit(1);
  for (int ms = 0; ms < 5000; ms += 10) {
    transmit();
    now += 10 * kMs;
  }
  transmit();
  expect_completion(id, NATAGG_AGGREGATOR_LOST);
  EXPECT_EQ(stream->failure().message, "aggregator 10.0.0.1:4790 has been silent for 5000 ms");
}

TEST_F(RunningTest, DoesNotTakeItsOwnPauseForTheAggregatorsSilence) {
  connect();
  submit(1);
  transmit();
  now += 9000 * kMs;
  transmit();
  EXPECT_EQ(stream->state(), Stream::State::kReady);
}

TEST_F(RunningTest, NamesTheRankThatFellSilentOnAbort) {
  connect();
  const std::uint64_t one = submit(1);
  const std::uint64_t two = submit(1);
  proto::AbortBody body{};
  body.reason = proto::AbortReason::kMemberSilent;
  body.rank = Be16{2};
  give_abort(body, kEpoch - 1);  // of an earlier session
  EXPECT_EQ(stream->state(), Stream::State::kReady);
  give_abort(body);
  expect_completion(one, NATAGG_RANK_LOST);
  expect_completion(two, NATAGG_RANK_LOST);
  EXPECT_EQ(stream->failure().rank, 2);
  EXPECT_EQ(stream->failure().message, "rank 2 fell silent (aggregator 10.0.0.1:4790)");
  // Whatever comes later fails at once.
  expect_completion(submit(1), NATAGG_RANK_LOST);
  // And the others are told.
  EXPECT_EQ(transmit(Type::kLeave).size(), 1U);
}

TEST_F(RunningTest, TellsTheOthersWhomItWaitedForInVain) {
  connect();
  submit(1, 100 * kMs);
  const auto sent = data();
  give_pending(sent[0], 2);
  now += 100 * kMs;
  const auto leaves = transmit(Type::kLeave);
  ASSERT_EQ(leaves.size(), 1U);
  const auto body = proto::read_body<proto::LeaveBody>(leaves[0].packet);
  EXPECT_EQ(body.reason, proto::LeaveReason::kTimedOut);
  EXPECT_EQ(body.rank.value(), 2U);
  EXPECT_EQ(body.other_rank.value(), proto::kAggregatorRank);
}

TEST_F(RunningTest, BlamesTheRankThatALeaverWaitedForInVain) {
  connect();
  const std::uint64_t id = submit(1);
  proto::AbortBody body{};
  body.reason = proto::AbortReason::kMemberLeft;
  body.rank = Be16{0};
  body.other_rank = Be16{2};
  body.cause = proto::LeaveReason::kTimedOut;
  give_abort(body);
  expect_completion(id, NATAGG_RANK_LOST);
  EXPECT_EQ(stream->failure().rank, 2);
  EXPECT_EQ(stream->failure().message,
            "rank 2 is missing: rank 0 gave up waiting for it (aggregator 10.0.0.1:4790)");
}

TEST_F(RunningTest, NamesBothRanksAndSizesOnAMismatch) {
  connect();
  submit(1);
  proto::AbortBody body{};
  body.reason = proto::AbortReason::kMismatch;
  body.rank = Be16{2};
  body.other_rank = Be16{0};
  body.fingerprint = Be64{proto::fingerprint({.length = 100})};
  body.other_fingerprint = Be64{proto::fingerprint({.length = 200})};
  body.operation = Be32{3};
  body.other_operation = Be32{3};
  give_abort(body);
  EXPECT_EQ(stream->failure().status, NATAGG_MISMATCH);
  EXPECT_EQ(stream->failure().message,
            "ranks disagree: rank 2 submitted a sum of 100 float32 as operation 3, rank 0 "
            "submitted a sum of 200 float32 as operation 3 (aggregator 10.0.0.1:4790)");
  // And tells the other shards, where others may hear of it first.
  const auto leaves = transmit(Type::kLeave);
  ASSERT_EQ(leaves.size(), 1U);
  const auto told = proto::read_body<proto::LeaveBody>(leaves[0].packet);
  EXPECT_EQ(told.reason, proto::LeaveReason::kMismatch);
  EXPECT_EQ(told.rank.value(), 2U);
  EXPECT_EQ(told.other_rank.value(), 0U);
  EXPECT_EQ(told.fingerprint.value(), body.fingerprint.value());
  EXPECT_EQ(told.other_fingerprint.value(), body.other_fingerprint.value());
  EXPECT_EQ(told.operation.value(), 3U);
  EXPECT_EQ(told.other_operation.value(), 3U);
}

TEST_F(RunningTest, NamesTheRankThatAnyShardWaitsFor) {
  connect(2);
  submit(2 * kValues, 100 * kMs);
  const auto sent = data();
  ASSERT_EQ(sent.size(), 2U);
  give_pending(sent[1], 2);
  now += 100 * kMs;
  transmit();
  EXPECT_EQ(stream->failure().status, NATAGG_TIMED_OUT);
  EXPECT_EQ(stream->failure().rank, 2);
}

TEST_F(RunningTest, RejectsResultsThatAreNotForWhatItSent) {
  connect();
  submit(kValues);
  const auto sent = data();
  ASSERT_EQ(sent.size(), 1U);
  const auto give_changed = [&](auto change) {
    Packet packet = result_of(sent[0]);
    Header h = proto::read_header(packet);
    change(h);
    std::memcpy(packet.data(), &h, sizeof(h));
    stream->receive(packet, kAggregator, now);
  };
  give_changed([](Header& h) { h.epoch = Be32{kEpoch + 1}; });
  give_changed([](Header& h) { h.job = Be32{8}; });
  give_changed([](Header& h) { h.operation = Be32{1}; });
  give_changed([](Header& h) { h.fingerprint = Be64{proto::fingerprint({.length = 1000})}; });
  give_changed([](Header& h) { h.sequence = Be32{kFirst + 1}; });
  give_changed([](Header& h) { h.shift = 1; });
  Packet malformed = result_of(sent[0]);
  malformed.back() = std::byte{0x7F};
  stream->receive(malformed, kAggregator, now);
  stream->receive(result_of(sent[0]), {kAggregator.address, 1}, now);
  EXPECT_EQ(stream->stats().rejected_packets, 8U);
  EXPECT_FALSE(stream->poll_completion());
  give_result(sent[0]);
  EXPECT_TRUE(stream->poll_completion());
  give_result(sent[0]);
  EXPECT_EQ(stream->stats().duplicate_results, 1U);
}

TEST_F(RunningTest, FlagsPacketsWithSpecials) {
  connect();
  in = {1.0F, std::numeric_limits<float>::infinity()};
  out.resize(2);
  stream->submit({.operation = {.length = 2}, .in = in.data(), .out = out.data()});
  EXPECT_EQ(data()[0].header.flags, proto::kFlagNearest | proto::kFlagSpecials);
}

TEST_F(RunningTest, WorksInPlace) {
  connect();
  in.assign(256, 3.0F);
  stream->submit({.operation = {.length = 256}, .in = in.data(), .out = in.data()});
  const auto sent = data();
  give_result(sent[0]);
  now += 50 * kMs;
  const auto again = data();  // encoded before its neighbour was overwritten
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].packet, sent[1].packet);
}

TEST_F(RunningTest, ClosesWhenItsLeaveIsEchoed) {
  connect();
  const std::uint64_t id = submit(1);
  stream->close(now);
  expect_completion(id, NATAGG_CLOSED);
  EXPECT_EQ(stream->state(), Stream::State::kClosing);
  const auto leaves = transmit(Type::kLeave);
  ASSERT_EQ(leaves.size(), 1U);
  stream->receive(leaves[0].packet, kAggregator, now);
  transmit();
  EXPECT_EQ(stream->state(), Stream::State::kClosed);
}

TEST_F(RunningTest, ClosesSoonEvenWhenNobodyAnswers) {
  connect();
  stream->close(now);
  for (int ms = 0; ms < 100; ++ms) {
    transmit();
    now += kMs;
  }
  EXPECT_EQ(stream->state(), Stream::State::kClosed);
  EXPECT_EQ(stream->next_event(), worker::kNever);
}

TEST_F(RunningTest, CrossesTheWrapsOfSequenceAndOperation) {
  StreamConfig with = config();
  with.first_operation = 0xFFFF'FFFE;
  start(with);
  connect();
  for (std::uint32_t i = 0; i < 5; ++i) {
    const std::uint64_t id = submit(2 * kValues);
    const auto sent = data();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0].header.operation.value(), 0xFFFF'FFFE + i);
    for (const Sent& s : sent) give_result(s);
    expect_completion(id, NATAGG_OK);
  }
}

}  // namespace
}  // namespace natagg::test
