// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What callers and lanes tell each other, without threads or sockets.
#include "worker_lib/requests.hpp"

#include <gtest/gtest.h>

#include <array>

#include "worker_lib/error.hpp"

namespace natagg::worker {
namespace {

/// Counts how often it is woken.
class Bell final : public Transport {
 public:
  bool join(const proto::Endpoint&) override { return false; }
  void send(std::span<const Outgoing>) override {}
  std::span<const Incoming> receive() override { return {}; }
  void wait(Time) override {}
  void wake() override { ++rings; }
  TransportStats stats() const override { return {}; }

  int rings = 0;
};

class RequestsTest : public testing::Test {
 protected:
  RequestsTest() {
    for (Bell& bell : bells_) requests_.add_lane(bell);
    requests_.open();
  }

  Requests::Orders take(std::size_t lane) {
    Requests::Orders orders;
    requests_.take(lane, orders);
    return orders;
  }

  void end(std::size_t lane, Request request, natagg_status status, PartialReport partial = {}) {
    requests_.publish(
        lane,
        {.completions = {{.id = request - 1, .status = status, .partial = partial}}, .moves = {}});
  }

  natagg_status status(Request request) { return requests_.wait(request, Time{0}); }

  std::array<Bell, 2> bells_;
  Requests requests_{true};
};

const Failure kLost{NATAGG_RANK_LOST, 1, "rank 1 fell silent"};

TEST_F(RequestsTest, EndWhenTheyHaveInEveryLane) {
  const Request request = requests_.submit({});
  EXPECT_EQ(take(0).submissions.size(), 1U);
  EXPECT_EQ(take(1).submissions.size(), 1U);
  EXPECT_TRUE(take(1).submissions.empty());
  end(1, request, NATAGG_OK);
  EXPECT_EQ(status(request), NATAGG_IN_PROGRESS);
  end(0, request, NATAGG_OK);
  EXPECT_EQ(status(request), NATAGG_OK);
}

TEST_F(RequestsTest, WakeALaneOnceForAllThatItHasNotTaken) {
  requests_.submit({});
  requests_.submit({});
  EXPECT_EQ(bells_[0].rings, 1);
  static_cast<void>(take(0));
  requests_.submit({});
  EXPECT_EQ(bells_[0].rings, 2);
  EXPECT_EQ(bells_[1].rings, 1);
}

TEST_F(RequestsTest, ThatFailedInOneLaneStayTheOthersUntilTheseHaveEndedThem) {
  const Request request = requests_.submit({});
  requests_.publish(
      0, {.completions = {{.id = 0, .status = NATAGG_RANK_LOST}}, .moves = {}, .failure = kLost});
  EXPECT_EQ(status(request), NATAGG_IN_PROGRESS);
  EXPECT_EQ(requests_.failure().message, kLost.message);
  EXPECT_THROW(requests_.submit({}), Error);
  const auto orders = take(1);
  ASSERT_TRUE(orders.failure);
  EXPECT_EQ(orders.failure->rank, 1);
  EXPECT_FALSE(take(1).failure);
  EXPECT_FALSE(take(0).failure);
  end(1, request, NATAGG_OK);  // it was quicker than the news
  EXPECT_EQ(status(request), NATAGG_RANK_LOST);
}

TEST_F(RequestsTest, OfALaneThatEndsFailWithItsCause) {
  const Request request = requests_.submit({});
  end(1, request, NATAGG_OK);
  requests_.end_lane(0, {NATAGG_NO_MEMORY, -1, "out of memory"}, {});
  EXPECT_EQ(status(request), NATAGG_NO_MEMORY);
  EXPECT_TRUE(take(1).failure);
}

TEST_F(RequestsTest, HaveTheReportsOfAllLanesTogether) {
  const Request request = requests_.submit({});
  PartialReport whole{.chunks = 3, .least_ranks = 4};
  PartialReport lacking{.chunks = 1, .partial_chunks = 1, .least_ranks = 3};
  lacking.variance_inflation = 1.25;
  lacking.missing[0] = 8;
  end(0, request, NATAGG_OK, lacking);
  end(1, request, NATAGG_OK, whole);
  const auto report = requests_.partial(request);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->chunks, 4U);
  EXPECT_EQ(report->partial_chunks, 1U);
  EXPECT_EQ(report->least_ranks, 3U);
  EXPECT_EQ(report->variance_inflation, 1.25);
  EXPECT_EQ(report->missing[0], 8U);
}

TEST_F(RequestsTest, ReportOfALaneWithoutChunksOfItSaysNothing) {
  const Request request = requests_.submit({});
  end(0, request, NATAGG_OK, {.chunks = 2, .partial_chunks = 2, .least_ranks = 3});
  end(1, request, NATAGG_OK, {.least_ranks = 4});
  EXPECT_EQ(requests_.partial(request)->least_ranks, 3U);
}

TEST_F(RequestsTest, PassAMoveOnToTheOtherLanes) {
  ForeignMove move{};
  move.body.moves = proto::Be16{7};
  requests_.publish(1, {.completions = {}, .moves = {move}});
  const auto orders = take(0);
  ASSERT_EQ(orders.moves.size(), 1U);
  EXPECT_EQ(orders.moves.front().body.moves.value(), 7U);
  EXPECT_TRUE(take(1).moves.empty());
  EXPECT_EQ(bells_[0].rings, 1);
}

TEST_F(RequestsTest, CloseInEveryLane) {
  requests_.shutdown();
  EXPECT_TRUE(take(0).close);
  EXPECT_TRUE(take(1).close);
  EXPECT_EQ(requests_.failure().status, NATAGG_CLOSED);
  EXPECT_THROW(requests_.submit({}), Error);
}

}  // namespace
}  // namespace natagg::worker
