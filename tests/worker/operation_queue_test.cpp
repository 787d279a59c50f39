// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/operation_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace natagg::worker {
namespace {

Submission of_length(std::uint64_t length, Time deadline = kNever) {
  return {.operation = {.length = length}, .deadline = deadline};
}

TEST(OperationQueue, CutsEachOperationIntoChunksThatCoverItOnce) {
  for (const std::uint64_t length : {1U, 127U, 128U, 129U, 1000U}) {
    OperationQueue queue(0);
    EXPECT_TRUE(queue.set_layout({.values = 128}).empty());
    queue.submit(of_length(5));
    queue.submit(of_length(length));
    std::uint64_t hint = 0;
    std::uint64_t covered = 0;
    for (std::uint64_t number = 1; const auto range = queue.chunk(number, hint); ++number) {
      EXPECT_EQ(range->element, covered);
      EXPECT_EQ(range->operation->id, 1U);
      covered += range->count;
    }
    EXPECT_EQ(covered, length);
  }
}

TEST(OperationQueue, CountsChunksOfLengthsBeyond32Bits) {
  OperationQueue queue(0);
  EXPECT_TRUE(queue.set_layout({.values = 1408}).empty());
  const std::uint64_t length = (std::uint64_t{1} << 33) + 1;
  queue.submit(of_length(length));
  std::uint64_t hint = 0;
  const auto last = queue.chunk(length / 1408, hint);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->element, length / 1408 * 1408);
  EXPECT_EQ(last->count, length % 1408);
  EXPECT_FALSE(queue.chunk(length / 1408 + 1, hint));
}

TEST(OperationQueue, CutsWhatWasSubmittedBeforeTheChunkSizeIsKnown) {
  OperationQueue queue(0);
  queue.submit(of_length(0));
  queue.submit(of_length(300));
  std::uint64_t hint = 0;
  EXPECT_FALSE(queue.chunk(0, hint));
  EXPECT_TRUE(queue.set_layout({.values = 128}).empty());
  EXPECT_EQ(queue.chunk(2, hint)->count, 44U);
}

TEST(OperationQueue, CountsTheChunksOfItsOwnShardsAlone) {
  // Of five shards, numbers 1 and 4; chunks go on from one operation to the next.
  OperationQueue queue(0);
  EXPECT_TRUE(queue.set_layout({.values = 128, .shards = 5, .places = {4, 1}}).empty());
  EXPECT_TRUE(queue.submit(of_length(128)));        // chunk 0
  EXPECT_FALSE(queue.submit(of_length(128)));       // 1
  EXPECT_TRUE(queue.submit(of_length(256)));        // 2, 3
  EXPECT_FALSE(queue.submit(of_length(3 * 128)));   // 4 to 6
  EXPECT_FALSE(queue.submit(of_length(10 * 128)));  // 7 to 16
  EXPECT_EQ(queue.at(1).own_chunks, 1U);
  EXPECT_EQ(queue.at(3).own_chunks, 2U);
  EXPECT_EQ(queue.at(4).own_chunks, 4U);
  const auto completion = queue.complete_chunk(1);
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->partial.chunks, 1U);
  EXPECT_FALSE(queue.complete_chunk(3));
  EXPECT_TRUE(queue.complete_chunk(3));
}

TEST(OperationQueue, SaysWhatHasNoChunkOfItsShardsOnceItKnowsThem) {
  OperationQueue queue(0);
  for (const std::uint64_t length : {100U, 0U, 100U, 300U}) {
    EXPECT_EQ(queue.submit(of_length(length)), length == 0);
  }
  const std::vector<std::uint64_t> ended =
      queue.set_layout({.values = 128, .shards = 3, .places = {1}});
  EXPECT_EQ(ended, std::vector<std::uint64_t>{0});  // chunk 0 goes to shard 0, chunk 1 here
}

TEST(OperationQueue, LetsALaterOperationEndFirst) {
  OperationQueue queue(0);
  EXPECT_TRUE(queue.set_layout({.values = 128}).empty());
  queue.submit(of_length(256));
  queue.submit(of_length(1));
  EXPECT_TRUE(queue.complete_chunk(1));
  EXPECT_FALSE(queue.complete_chunk(0));
  EXPECT_TRUE(queue.complete_chunk(0));
  EXPECT_EQ(queue.next_id(), 2U);
}

TEST(OperationQueue, KnowsTheEarliestDeadlineOfWhatIsPending) {
  OperationQueue queue(0);
  EXPECT_TRUE(queue.set_layout({.values = 128}).empty());
  EXPECT_EQ(queue.earliest_deadline(), kNever);
  queue.submit(of_length(1, 300));
  queue.submit(of_length(1, 200));
  queue.submit(of_length(0, 100));
  EXPECT_EQ(queue.earliest_deadline(), 200);
  EXPECT_EQ(queue.overdue(199), nullptr);
  EXPECT_EQ(queue.overdue(200)->id, 1U);
  queue.complete_chunk(1);
  EXPECT_EQ(queue.overdue(200), nullptr);
  EXPECT_EQ(queue.earliest_deadline(), 300);
}

TEST(OperationQueue, EndsAllThatIsPendingInOrder) {
  OperationQueue queue(0);
  EXPECT_TRUE(queue.set_layout({.values = 128}).empty());
  for (int i = 0; i < 3; ++i) queue.submit(of_length(1));
  queue.complete_chunk(1);
  std::vector<std::uint64_t> ended;
  queue.end_all([&](std::uint64_t id) { ended.push_back(id); });
  EXPECT_EQ(ended, (std::vector<std::uint64_t>{0, 2}));
  EXPECT_EQ(queue.earliest_deadline(), kNever);
}

}  // namespace
}  // namespace natagg::worker
