// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How a stream finds out whether the path carries packets that are cut up on their way, and notices
// when it no longer does.
#include <gtest/gtest.h>

#include <algorithm>

#include "stream_fixture.hpp"

namespace natagg::test {
namespace {

using worker::Segmentation;

class SegmentationTest : public StreamFixture {
 protected:
  static StreamConfig segmenting() {
    StreamConfig with = config();
    with.segmentation = true;
    with.window = 64;
    return with;
  }

  /// What goes out, of one type, and whether it may be segments.
  std::vector<bool> segmentable(Type type) {
    std::vector<bool> flags;
    std::array<worker::Outgoing, 64> burst;
    while (const std::size_t n = stream->transmit(now, burst)) {
      for (const worker::Outgoing& outgoing : std::span(burst).first(n)) {
        const Packet packet(outgoing.datagram.begin(), outgoing.datagram.end());
        if (proto::read_header(packet).type != type) continue;
        flags.push_back(outgoing.segmentable);
        sent.push_back({outgoing.to, packet, proto::read_header(packet)});
      }
    }
    return flags;
  }

  void answer(std::size_t length, const Endpoint& from = kAggregator) {
    const proto::OfferBody body{.instance = Be64{99},
                                .shards = Be16{1},
                                .max_values = Be16{proto::kMaxValues},
                                .max_window = Be16{256},
                                .max_workers = Be16{1024}};
    stream->receive(control_packet(header(Type::kOffer, 0), body, length), from, now);
  }

  void become_ready() {
    proto::WelcomeBody body = welcome_body(proto::SessionState::kReady);
    body.window = Be16{64};
    welcome(body);
    ASSERT_EQ(stream->state(), Stream::State::kReady);
  }

  /// The path is asked, but there is no answer yet.
  void start_probing() {
    start(segmenting());
    transmit();
    offer(1, kValues);
    ASSERT_EQ(segmentable(Type::kHello), std::vector<bool>(2, true));
  }

  void start_carrying() {
    start_probing();
    answer(kLongest - 1);
    answer(kLongest - 2);
    become_ready();
  }

  /// Of the chunks that may go out as segments, the shard lacks so many, and gets them when they
  /// are sent again. Returns how many that were.
  std::size_t lose_segments(std::size_t count) {
    std::size_t lost = 0;
    while (lost < count) {
      const std::size_t before = sent.size();
      const std::vector<bool> flags = segmentable(Type::kData);
      const std::vector<Sent> fresh(sent.begin() + static_cast<std::ptrdiff_t>(before), sent.end());
      if (fresh.empty()) break;
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        if (!flags[i] || lost == count) continue;
        ++lost;
        give_nack(fresh[i], 1);
        segmentable(Type::kData);  // again, and by itself
        give_result(fresh[i]);
      }
    }
    return lost;
  }

  static constexpr std::size_t kLongest = proto::datagram_size(kValues);
  std::vector<Sent> sent;
};

TEST_F(SegmentationTest, IsNotAskedForWhereTheHostCannotSegment) {
  start(config());
  transmit();
  offer(1, kValues);
  EXPECT_TRUE(transmit(Type::kHello).empty());
  proto::WelcomeBody body = welcome_body(proto::SessionState::kReady);
  welcome(body);
  submit(4 * kValues);
  EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(4, false));
  EXPECT_EQ(stream->stats().segmentation, Segmentation::kOff);
}

TEST_F(SegmentationTest, IsAskedForByTwoQuestionsThatLeaveTogetherBeforeTheFirstJoin) {
  start(segmenting());
  transmit();
  offer(1, kValues);
  const auto all = transmit();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].header.type, Type::kHello);
  EXPECT_EQ(all[1].header.type, Type::kHello);
  EXPECT_EQ(all[2].header.type, Type::kJoin);
  EXPECT_EQ(all[0].packet.size(), kLongest - 1);
  EXPECT_EQ(all[1].packet.size(), kLongest - 2);
}

TEST_F(SegmentationTest, IsUsedForNewChunksOnceBothQuestionsAreAnswered) {
  start_carrying();
  submit(4 * kValues);
  EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(4, true));
  EXPECT_EQ(stream->stats().segmentation, Segmentation::kCarried);
}

TEST_F(SegmentationTest, IsNotUsedWhileOneQuestionIsUnanswered) {
  start_probing();
  answer(kLongest - 1);
  answer(kLongest - 1);      // the network doubled it
  answer(2 * kLongest - 3);  // both as one: nobody cut them apart
  answer(kLongest);
  become_ready();
  submit(4 * kValues);
  EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(4, false));
  EXPECT_EQ(stream->stats().segmentation, Segmentation::kProbing);
}

TEST_F(SegmentationTest, IsAskedForThreeTimesInAllWhileOperationsRun) {
  start_probing();
  become_ready();
  submit(40 * kValues);
  for (int round = 1; round < 3; ++round) {
    EXPECT_EQ(stream->next_event(), std::min(stream->next_event(), now + 50 * kMs));
    now += 50 * kMs;
    EXPECT_EQ(segmentable(Type::kHello).size(), 2U);
    EXPECT_TRUE(segmentable(Type::kHello).empty());
  }
  now += 50 * kMs;
  EXPECT_TRUE(segmentable(Type::kHello).empty());
  segmentable(Type::kData);
  EXPECT_EQ(stream->stats().segmentation, Segmentation::kNotCarried);
}

TEST_F(SegmentationTest, IsUsedAfterALateAnswer) {
  start_probing();
  become_ready();
  now += 50 * kMs;
  EXPECT_EQ(segmentable(Type::kHello).size(), 2U);
  answer(kLongest - 2);
  answer(kLongest - 1);
  submit(4 * kValues);
  EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(4, true));
}

TEST_F(SegmentationTest, IsNotBelievedOfWhoeverWasNotAsked) {
  start_probing();
  answer(kLongest - 1, {kAggregator.address + 1, kAggregator.port});
  answer(kLongest - 2, {kAggregator.address + 1, kAggregator.port});
  become_ready();
  submit(4 * kValues);
  EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(4, false));
}

TEST_F(SegmentationTest, IsNotUsedForWhatIsSentAgain) {
  start_carrying();
  submit(8 * kValues);
  segmentable(Type::kData);
  give_nack(sent[sent.size() - 8], 0b111);
  EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(3, false));
}

TEST_F(SegmentationTest, EndsWhenFarMoreChunksThatLeftSoAreLostThanArrive) {
  start_carrying();
  submit(200 * kValues);
  EXPECT_EQ(lose_segments(31), 31U);
  EXPECT_EQ(stream->stats().segmentation, Segmentation::kCarried);
  EXPECT_EQ(lose_segments(1), 1U);
  const std::vector<bool> next = segmentable(Type::kData);
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next, std::vector<bool>(next.size(), false));
  EXPECT_EQ(stream->stats().segmentation, Segmentation::kNotCarried);
}

TEST_F(SegmentationTest, EndsWhenTimeOutsAloneShowThatNothingArrives) {
  start_carrying();
  submit(2 * kValues);  // and never a later chunk of which the shard could say that it lacks these
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(2, true)) << i;
    EXPECT_EQ(stream->stats().segmentation, Segmentation::kCarried) << i;
    const std::vector<Sent> both(sent.end() - 2, sent.end());
    now = stream->next_event();
    while (segmentable(Type::kData).empty()) now = stream->next_event();
    for (const Sent& chunk : both) give_result(chunk);
    submit(2 * kValues);
  }
  EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(2, false));
}

TEST_F(SegmentationTest, GoesOnWhenChunksOnlyWaitForAnotherRank) {
  start_carrying();
  for (int i = 0; i < 50; ++i) {
    submit(2 * kValues);
    EXPECT_EQ(segmentable(Type::kData), std::vector<bool>(2, true)) << i;
    const std::vector<Sent> both(sent.end() - 2, sent.end());
    now = stream->next_event();
    while (segmentable(Type::kData).empty()) now = stream->next_event();
    for (const Sent& chunk : both) give_pending(chunk, 2);
    for (const Sent& chunk : both) give_result(chunk);
  }
}

TEST_F(SegmentationTest, GoesOnWhenMoreArriveThanAreLost) {
  start_carrying();
  submit(400 * kValues);
  sent.clear();
  for (std::uint32_t chunk = 0; chunk < 300; ++chunk) {
    const auto sent_first = [&] {
      return std::ranges::find_if(sent, [&](const Sent& candidate) {
        return candidate.header.sequence.value() == kFirst + chunk;
      });
    };
    if (sent_first() == sent.end()) segmentable(Type::kData);
    ASSERT_NE(sent_first(), sent.end()) << chunk;
    const Sent copy = *sent_first();
    if (chunk % 3 == 0) {
      give_nack(copy, 1);
      segmentable(Type::kData);
    }
    give_result(copy);
  }
  segmentable(Type::kData);
  EXPECT_EQ(stream->stats().segmentation, Segmentation::kCarried);
}

}  // namespace
}  // namespace natagg::test
