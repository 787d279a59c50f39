// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Datagrams that leave and arrive as one packet, over real sockets: the same datagrams as ever.
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "worker_lib/transport/udp.hpp"

namespace natagg::worker {
namespace {

constexpr std::uint32_t kLoopback = 0x7F00'0001;
constexpr Time kSecond = 1'000'000'000;

using Datagram = std::vector<std::byte>;

/// Of that length, and unlike any other.
Datagram make_datagram(std::size_t length, std::size_t number) {
  Datagram datagram(length);
  for (std::size_t i = 0; i < length; ++i) {
    datagram[i] = static_cast<std::byte>((number * 131 + i * 7 + i / 251) & 0xFF);
  }
  return datagram;
}

/// A transport, and a socket that it talks to.
class SegmentationTest : public ::testing::Test {
 protected:
  SegmentationTest() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = to_sockaddr({kLoopback, 0});
    EXPECT_EQ(::bind(socket_.get(), generic(&address), sizeof address), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket_.get(), generic(&address), &size), 0);
    peer_ = to_endpoint(address);
    const int room = 4 << 20;
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    const int none = 0;
    if (::setsockopt(socket_.get(), SOL_UDP, UDP_SEGMENT, &none, sizeof none) != 0) {
      // GTEST_SKIP() has no effect in a constructor's caller; SetUp() asks.
      can_segment_ = false;
    }
  }

  void SetUp() override {
    if (!can_segment_) GTEST_SKIP() << "this kernel has no UDP_SEGMENT";
  }

  [[nodiscard]] UdpConfig config(bool gso = true) const {
    return {.aggregators = {peer_}, .local = {}, .gso = gso};
  }

  void send(Transport& transport, const std::vector<Datagram>& datagrams) const {
    std::vector<Outgoing> outgoing;
    for (const Datagram& datagram : datagrams) {
      outgoing.push_back({.to = peer_, .datagram = datagram, .segmentable = true});
    }
    transport.send(outgoing);
  }

  /// All that has come to the socket, one by one.
  std::vector<Datagram> arrived(sockaddr_in* source = nullptr) const {
    std::vector<Datagram> all;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    Datagram buffer(65'536);
    ssize_t length = 0;
    while ((length = ::recvfrom(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT,
                                generic(&from), &size)) >= 0) {
      all.emplace_back(buffer.begin(), buffer.begin() + length);
    }
    if (source != nullptr) *source = from;
    return all;
  }

  /// All that has come to `transport`.
  static std::vector<Datagram> arrived(Transport& transport) {
    std::vector<Datagram> all;
    for (auto batch = transport.receive(); !batch.empty(); batch = transport.receive()) {
      for (const Incoming& incoming : batch) {
        all.emplace_back(incoming.datagram.begin(), incoming.datagram.end());
      }
    }
    return all;
  }

  /// From where `transport` sends.
  sockaddr_in address_of(Transport& transport) const {
    send(transport, {make_datagram(9, 9)});
    sockaddr_in source{};
    EXPECT_EQ(arrived(&source).size(), 1U);
    return source;
  }

  /// `bytes` to `to` as one packet of datagrams of `length` bytes.
  void send_as_one(const sockaddr_in& to, const std::vector<std::byte>& bytes,
                   std::uint16_t length) const {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof length)> control{};
    sockaddr_in address = to;
    iovec vector{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_name = &address;
    message.msg_namelen = sizeof address;
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof length);
    std::memcpy(CMSG_DATA(header), &length, sizeof length);
    ASSERT_EQ(::sendmsg(socket_.get(), &message, 0), static_cast<ssize_t>(bytes.size()));
  }

  void set_service(int service) const {
    ASSERT_EQ(::setsockopt(socket_.get(), IPPROTO_IP, IP_TOS, &service, sizeof service), 0);
  }

  /// Of what the socket of this process sends that is bound to `address`: then the kernel refuses
  /// to segment it.
  static void leave_checksums_out(const sockaddr_in& address) {
    constexpr int kMostFiles = 1024;
    for (int file = 0; file < kMostFiles; ++file) {
      sockaddr_in bound{};
      socklen_t size = sizeof bound;
      if (::getsockname(file, generic(&bound), &size) != 0 || bound.sin_port != address.sin_port) {
        continue;
      }
      const int on = 1;
      EXPECT_EQ(::setsockopt(file, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
      return;
    }
    FAIL() << "no socket has port " << ntohs(address.sin_port);
  }

  static std::vector<std::byte> joined(const std::vector<Datagram>& datagrams) {
    std::vector<std::byte> bytes;
    for (const Datagram& datagram : datagrams) {
      bytes.insert(bytes.end(), datagram.begin(), datagram.end());
    }
    return bytes;
  }

  static std::vector<Datagram> equal_ones(std::size_t count, std::size_t length) {
    std::vector<Datagram> datagrams;
    for (std::size_t i = 0; i < count; ++i) datagrams.push_back(make_datagram(length, i));
    return datagrams;
  }

  FileDescriptor socket_;
  proto::Endpoint peer_;
  bool can_segment_ = true;
};

TEST_F(SegmentationTest, ReachesAPlainSocketAsTheDatagramsThatWereSent) {
  UdpTransport transport(config());
  ASSERT_TRUE(transport.segments());
  std::vector<Datagram> sent = equal_ones(50, 1472);
  sent.push_back(make_datagram(100, 50));
  sent.push_back(make_datagram(8896, 51));
  sent.push_back(make_datagram(8896, 52));
  sent.push_back(make_datagram(44, 53));
  sent.push_back(make_datagram(44, 54));
  sent.push_back(make_datagram(60, 55));
  send(transport, sent);
  EXPECT_TRUE(arrived() == sent);
  // 44 of 1472, 6 of them and 100, 2 of 8896 and 44; the last two are of growing lengths.
  EXPECT_EQ(transport.stats().segmented, 54U);
  EXPECT_EQ(transport.stats().send_failures, 0U);
  EXPECT_EQ(transport.stats().segmentation_error, 0);
}

TEST_F(SegmentationTest, ReachesATransportAsTheDatagramsThatWereSent) {
  UdpTransport receiver(config());
  static_cast<void>(receiver.reserve_buffers(4 << 20));
  peer_ = to_endpoint(address_of(receiver));
  UdpTransport sender(config());
  std::vector<Datagram> sent = equal_ones(60, 1472);
  sent.push_back(make_datagram(44, 60));
  send(sender, sent);
  receiver.wait(kSecond);
  EXPECT_TRUE(arrived(receiver) == sent);
  EXPECT_EQ(receiver.stats().merged, 61U);
  EXPECT_EQ(receiver.stats().kernel_drops, 0U);
}

TEST_F(SegmentationTest, ReachesATransportThatDoesNotMergeAsTheDatagramsThatWereSent) {
  UdpTransport receiver(config(false));
  static_cast<void>(receiver.reserve_buffers(4 << 20));
  peer_ = to_endpoint(address_of(receiver));
  UdpTransport sender(config());
  const std::vector<Datagram> sent = equal_ones(30, 1472);
  send(sender, sent);
  receiver.wait(kSecond);
  EXPECT_TRUE(arrived(receiver) == sent);
  EXPECT_EQ(receiver.stats().merged, 0U);
}

TEST_F(SegmentationTest, TakesSingleDatagramsAsEver) {
  UdpTransport receiver(config());
  static_cast<void>(receiver.reserve_buffers(1 << 20));
  const sockaddr_in to = address_of(receiver);
  const std::vector<Datagram> sent = equal_ones(100, 700);
  for (const Datagram& datagram : sent) {
    ASSERT_EQ(::sendto(socket_.get(), datagram.data(), datagram.size(), 0, generic(&to), sizeof to),
              700);
  }
  EXPECT_TRUE(arrived(receiver) == sent);
  EXPECT_EQ(receiver.stats().merged, 0U);
}

TEST_F(SegmentationTest, CutsEachOfManyMergedPackets) {
  UdpTransport receiver(config());
  static_cast<void>(receiver.reserve_buffers(8 << 20));
  const sockaddr_in to = address_of(receiver);
  std::vector<Datagram> sent;
  for (std::size_t i = 0; i < 20; ++i) {
    std::vector<Datagram> part;
    for (std::size_t j = 0; j < 7; ++j) part.push_back(make_datagram(8896, sent.size() + j));
    part.push_back(make_datagram(1 + i, i));
    send_as_one(to, joined(part), 8896);
    sent.insert(sent.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(arrived(receiver) == sent);
  EXPECT_EQ(receiver.stats().merged, 160U);
  EXPECT_EQ(receiver.stats().kernel_drops, 0U);
}

TEST_F(SegmentationTest, GivesTheMarkOfCongestionToAllThatCameInOnePacket) {
  UdpTransport receiver(config());
  const sockaddr_in to = address_of(receiver);
  for (const int service : {3, 2}) {
    set_service(service);
    send_as_one(to, joined(equal_ones(5, 300)), 300);
    const auto batch = receiver.receive();
    ASSERT_EQ(batch.size(), 5U);
    for (const Incoming& incoming : batch) {
      EXPECT_EQ(incoming.congested, service == 3);
      EXPECT_EQ(incoming.source, peer_);
    }
    EXPECT_TRUE(receiver.receive().empty());
  }
}

TEST_F(SegmentationTest, MergesWhatComesToAGroup) {
  constexpr proto::Endpoint kGroup{0xEFC0'5A02, 47903};  // 239.192.90.2
  UdpTransport transport(config());
  static_cast<void>(transport.reserve_buffers(1 << 20));
  ASSERT_TRUE(transport.join(kGroup));
  const in_addr loopback{.s_addr = htonl(kLoopback)};
  ASSERT_EQ(::setsockopt(socket_.get(), IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback),
            0);
  const std::vector<Datagram> sent = equal_ones(10, 1400);
  send_as_one(to_sockaddr(kGroup), joined(sent), 1400);
  transport.wait(kSecond);
  EXPECT_TRUE(arrived(transport) == sent);
}

TEST_F(SegmentationTest, SendsSinglyAtOnceWhatTheKernelWillNotSegment) {
  UdpTransport transport(config());
  ASSERT_TRUE(transport.segments());
  leave_checksums_out(address_of(transport));
  const std::vector<Datagram> sent = equal_ones(10, 1400);
  send(transport, sent);
  EXPECT_TRUE(arrived() == sent);
  EXPECT_EQ(transport.stats().segmented, 0U);
  EXPECT_EQ(transport.stats().send_failures, 0U);
  EXPECT_EQ(transport.stats().segmentation_error, EINVAL);
  EXPECT_FALSE(transport.segments());
}

TEST_F(SegmentationTest, IsNotDoneWhereItIsTurnedOff) {
  UdpTransport transport(config(false));
  EXPECT_FALSE(transport.segments());
  const std::vector<Datagram> sent = equal_ones(10, 1400);
  send(transport, sent);
  EXPECT_TRUE(arrived() == sent);
  EXPECT_EQ(transport.stats().segmented, 0U);
}

}  // namespace
}  // namespace natagg::worker
