// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Which datagrams a batch has leave as one packet.
#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <cstring>
#include <vector>

#include "worker_lib/transport/batch.hpp"

namespace natagg::worker {
namespace {

constexpr proto::Endpoint kShard{0x0A00'0001, 4790};
constexpr proto::Endpoint kNextShard{0x0A00'0001, 4791};

class SendBatchTest : public ::testing::Test {
 protected:
  void add(std::size_t length, const proto::Endpoint& to = kShard, bool segmentable = true) {
    datagrams_.push_back({.to = to,
                          .datagram = std::span(bytes_).subspan(datagrams_.size(), length),
                          .segmentable = segmentable});
  }
  void add(std::size_t count, std::size_t length) {
    for (std::size_t i = 0; i < count; ++i) add(length);
  }

  /// Datagrams of each message.
  std::vector<std::size_t> runs(bool segment = true) {
    std::vector<std::size_t> counts;
    std::size_t done = 0;
    for (const mmsghdr& message : batch_.prepare(datagrams_, segment)) {
      const msghdr& header = message.msg_hdr;
      const std::size_t count = header.msg_iovlen;
      counts.push_back(count);
      const std::span<const Outgoing> run = std::span(datagrams_).subspan(done, count);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(header.msg_iov[i].iov_base, run[i].datagram.data());
        EXPECT_EQ(header.msg_iov[i].iov_len, run[i].datagram.size());
      }
      EXPECT_EQ(to_endpoint(*static_cast<const sockaddr_in*>(header.msg_name)), run.front().to);
      EXPECT_EQ(segment_length(header), count == 1 ? 0 : run.front().datagram.size());
      done += count;
    }
    EXPECT_EQ(done, datagrams_.size());
    return counts;
  }

  /// What the kernel is told, 0 for nothing.
  static std::size_t segment_length(const msghdr& header) {
    const cmsghdr* control = CMSG_FIRSTHDR(&header);
    if (control == nullptr) return 0;
    EXPECT_EQ(control->cmsg_level, SOL_UDP);
    EXPECT_EQ(control->cmsg_type, UDP_SEGMENT);
    EXPECT_EQ(control->cmsg_len, CMSG_LEN(sizeof(std::uint16_t)));
    std::uint16_t length = 0;
    std::memcpy(&length, CMSG_DATA(control), sizeof length);
    return length;
  }

  using Runs = std::vector<std::size_t>;

  SendBatch batch_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(70'000);
  std::vector<Outgoing> datagrams_;
};

TEST_F(SendBatchTest, PutsEqualDatagramsForOneDestinationIntoOnePacket) {
  add(5, 1472);
  EXPECT_EQ(runs(), Runs({5}));
}

TEST_F(SendBatchTest, LeavesEachByItselfUnlessToldToSegment) {
  add(5, 1472);
  EXPECT_EQ(runs(false), Runs({1, 1, 1, 1, 1}));
  EXPECT_EQ(runs(true), Runs({5}));
  EXPECT_EQ(runs(false), Runs({1, 1, 1, 1, 1}));  // nothing is left of what the kernel was told
}

TEST_F(SendBatchTest, SaysNothingOfSegmentsForASingleDatagram) {
  add(1, 1472);
  EXPECT_EQ(runs(), Runs({1}));
}

TEST_F(SendBatchTest, PreparesNothingOfNothing) {
  EXPECT_EQ(runs(), Runs());
}

TEST_F(SendBatchTest, EndsARunWhereTheDestinationChanges) {
  add(2, 1472);
  add(1472, kNextShard);
  add(1472, kNextShard);
  add(1472, kNextShard);
  add(1, 1472);
  EXPECT_EQ(runs(), Runs({2, 3, 1}));
}

TEST_F(SendBatchTest, EndsARunAfterAShorterDatagram) {
  add(3, 1472);
  add(1, 100);
  add(2, 1472);
  EXPECT_EQ(runs(), Runs({4, 2}));
}

TEST_F(SendBatchTest, EndsARunBeforeALongerDatagram) {
  add(2, 100);
  add(2, 1472);
  EXPECT_EQ(runs(), Runs({2, 2}));
}

TEST_F(SendBatchTest, DoesNotPutTwoShortOnesAfterLongOnes) {
  add(2, 1472);
  add(3, 44);
  EXPECT_EQ(runs(), Runs({3, 2}));
}

TEST_F(SendBatchTest, LeavesThoseByThemselvesThatMayNotBeSegments) {
  add(2, 1472);
  add(1472, kShard, false);
  add(2, 1472);
  EXPECT_EQ(runs(), Runs({2, 1, 2}));
}

TEST_F(SendBatchTest, FillsAPacketUpToWhatIpCarries) {
  add(8, 8896);  // of 65,507 bytes
  EXPECT_EQ(runs(), Runs({7, 1}));
  datagrams_.clear();
  add(1, 65'500);
  add(1, 7);
  add(1, 8);
  EXPECT_EQ(runs(), Runs({2, 1}));
  datagrams_.clear();
  add(1, 65'500);
  add(1, 8);
  EXPECT_EQ(runs(), Runs({1, 1}));
}

TEST_F(SendBatchTest, FillsAPacketUpToAWholeBatch) {
  add(kBatch, 44);
  EXPECT_EQ(runs(), Runs({64}));
}

TEST_F(SendBatchTest, HasNoEmptySegment) {
  add(2, 44);
  add(1, 0);
  add(2, 0);
  EXPECT_EQ(runs(), Runs({2, 1, 1, 1}));
}

}  // namespace
}  // namespace natagg::worker
