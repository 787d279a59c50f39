// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "worker_lib/error.hpp"
#include "worker_lib/transport/lossy.hpp"
#include "worker_lib/transport/receive_budget.hpp"
#include "worker_lib/transport/udp.hpp"

namespace natagg::worker {
namespace {

constexpr std::uint32_t kLoopback = 0x7F00'0001;
constexpr proto::Endpoint kGroup{0xEFC0'5A01, 47901};  // 239.192.90.1
constexpr Time kSecond = 1'000'000'000;

TEST(ReceiveBudget, ChargesWhatLinuxDoes) {
  EXPECT_EQ(packet_charge(100), 2304U);
  EXPECT_EQ(packet_charge(1472), 3968U);
  EXPECT_EQ(packet_charge(8896), 18816U);
}

TEST(ReceiveBudget, FitsPacketsIntoThreeQuartersOfWhatWasGranted) {
  EXPECT_EQ(packets_that_fit(425'984, 1472), 80U);  // Debian's default rmem_max, doubled
  EXPECT_EQ(packets_that_fit(425'984, 8896), 16U);
  EXPECT_EQ(packets_that_fit(2304, 100), 1U);
  EXPECT_EQ(packets_that_fit(0, 100), 1U);
}

TEST(ReceiveBudget, AsksForEnough) {
  for (const std::size_t packets : {1, 2, 3, 100, 1024}) {
    EXPECT_GE(packets_that_fit(2 * buffer_for(packets, 1472), 1472), packets);
  }
}

/// Two sockets of 127.0.0.1 that know each other.
class UdpTest : public ::testing::Test {
 protected:
  UdpTest() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = to_sockaddr({kLoopback, 0});
    EXPECT_EQ(::bind(socket_.get(), generic(&address), sizeof address), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(socket_.get(), generic(&address), &size), 0);
    peer_ = to_endpoint(address);
  }

  [[nodiscard]] UdpConfig config() const { return {.aggregators = {peer_}, .local = {}}; }

  /// Sends `count` datagrams through `transport`, each its number; returns the sender's endpoint
  /// as the peer sees it.
  proto::Endpoint send(Transport& transport, std::uint32_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::vector<Outgoing> outgoing;
    for (std::uint32_t i = 0; i < count; ++i) {
      numbers[i] = i;
      outgoing.push_back({.to = peer_, .datagram = std::as_bytes(std::span(&numbers[i], 1))});
    }
    transport.send(outgoing);
    sockaddr_in source{};
    received_.clear();
    std::uint32_t number = 0;
    socklen_t size = sizeof source;
    while (::recvfrom(socket_.get(), &number, sizeof number, MSG_DONTWAIT, generic(&source),
                      &size) == sizeof number) {
      received_.push_back(number);
    }
    return to_endpoint(source);
  }

  void answer(const proto::Endpoint& to, std::size_t count, std::size_t bytes) {
    const sockaddr_in address = to_sockaddr(to);
    const std::vector<std::byte> datagram(bytes, std::byte{9});
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(
          ::sendto(socket_.get(), datagram.data(), bytes, 0, generic(&address), sizeof address),
          static_cast<ssize_t>(bytes));
    }
  }

  static std::size_t drain(Transport& transport) {
    std::size_t count = 0;
    for (auto batch = transport.receive(); !batch.empty(); batch = transport.receive()) {
      count += batch.size();
    }
    return count;
  }

  FileDescriptor socket_;
  proto::Endpoint peer_;
  std::vector<std::uint32_t> received_;
};

TEST_F(UdpTest, SendsAndReceivesMoreThanABatchInOrder) {
  UdpTransport transport(config());
  EXPECT_GE(transport.mtu(), 65535U);
  const proto::Endpoint own = send(transport, 150);
  ASSERT_EQ(received_.size(), 150U);
  for (std::uint32_t i = 0; i < 150; ++i) EXPECT_EQ(received_[i], i);

  answer(own, 150, 60);
  std::size_t count = 0;
  for (auto batch = transport.receive(); !batch.empty(); batch = transport.receive()) {
    for (const Incoming& incoming : batch) {
      EXPECT_EQ(incoming.source, peer_);
      EXPECT_EQ(incoming.datagram.size(), 60U);
      ++count;
    }
  }
  EXPECT_EQ(count, 150U);
  EXPECT_EQ(transport.stats().kernel_drops, 0U);
  EXPECT_EQ(transport.stats().send_failures, 0U);
}

TEST_F(UdpTest, SeesTheMarkOfCongestionOnWhatArrives) {
  UdpTransport transport(config());
  const proto::Endpoint own = send(transport, 1);
  for (const int service : {0, 1, 2, 3, 0xFF, 0xFE}) {
    ASSERT_EQ(::setsockopt(socket_.get(), IPPROTO_IP, IP_TOS, &service, sizeof service), 0);
    answer(own, 1, 44);
    const auto batch = transport.receive();
    ASSERT_EQ(batch.size(), 1U);
    EXPECT_EQ(batch[0].congested, (service & 3) == 3) << service;
    EXPECT_TRUE(transport.receive().empty());
  }
}

TEST_F(UdpTest, MarksWhatItSendsAsReadyForMarksOfCongestion) {
  UdpTransport transport(config());
  const int on = 1;
  ASSERT_EQ(::setsockopt(socket_.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof on), 0);
  const std::byte datagram[4] = {};
  const Outgoing outgoing{.to = peer_, .datagram = datagram};
  transport.send({&outgoing, 1});
  alignas(cmsghdr) std::byte control[64];
  std::byte payload[4];
  iovec vector{.iov_base = payload, .iov_len = sizeof payload};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ASSERT_EQ(::recvmsg(socket_.get(), &message, MSG_DONTWAIT), 4);
  const cmsghdr* found = CMSG_FIRSTHDR(&message);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(std::to_integer<int>(*reinterpret_cast<const std::byte*>(CMSG_DATA(found))) & 3, 2);
}

TEST_F(UdpTest, ReportsWhatTheKernelDropped) {
  UdpTransport transport(config());
  transport.reserve_buffers(1);  // the kernel's minimum, about 2 KB
  const proto::Endpoint own = send(transport, 1);
  answer(own, 50, 1400);
  const std::size_t received = drain(transport);
  EXPECT_LT(received, 50U);
  EXPECT_EQ(received + transport.stats().kernel_drops, 50U);
}

TEST_F(UdpTest, HoldsAsManyDatagramsAsTheBudgetSays) {
  for (const std::size_t bytes : {200, 1472, 8896}) {
    UdpTransport transport(config());
    const std::size_t granted = transport.reserve_buffers(200'000);
    EXPECT_GE(granted, 200'000U);
    const std::size_t fit = packets_that_fit(granted, bytes);
    const proto::Endpoint own = send(transport, 1);
    answer(own, fit, bytes);
    EXPECT_EQ(drain(transport), fit);
    EXPECT_EQ(transport.stats().kernel_drops, 0U) << bytes;
  }
}

TEST_F(UdpTest, CountsDatagramsThatCannotBeSentAndSendsTheRest) {
  UdpTransport transport(config());
  const std::vector<std::byte> huge(70'000);
  const std::array<std::byte, 4> small{};
  const std::array<Outgoing, 3> outgoing{Outgoing{peer_, small}, Outgoing{peer_, huge},
                                         Outgoing{peer_, small}};
  transport.send(outgoing);
  EXPECT_EQ(transport.stats().send_failures, 1U);
  std::array<std::byte, 8> buffer{};
  EXPECT_EQ(::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT), 4);
  EXPECT_EQ(::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT), 4);
}

TEST_F(UdpTest, SurvivesAPortThatNobodyListensTo) {
  UdpTransport transport(config());
  socket_ = FileDescriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::array<std::byte, 4> small{};
  const std::array<Outgoing, 2> outgoing{Outgoing{peer_, small}, Outgoing{peer_, small}};
  transport.send(outgoing);
  transport.send(outgoing);
  EXPECT_TRUE(transport.receive().empty());
}

TEST_F(UdpTest, HearsAGroupBesideItsOwnSocket) {
  UdpTransport transport(config());
  UdpTransport neighbour(config());
  ASSERT_TRUE(transport.join(kGroup));
  ASSERT_TRUE(neighbour.join(kGroup));  // the same group on the same host
  const in_addr loopback{.s_addr = htonl(kLoopback)};
  ASSERT_EQ(::setsockopt(socket_.get(), IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback),
            0);
  const proto::Endpoint own = send(transport, 1);
  answer(kGroup, 3, 100);
  answer(own, 2, 100);
  transport.wait(kSecond);
  EXPECT_EQ(drain(transport), 5U);
  EXPECT_EQ(drain(neighbour), 3U);
}

TEST_F(UdpTest, JoinsNoGroupWhereMulticastIsOff) {
  UdpConfig off = config();
  off.multicast = false;
  UdpTransport transport(off);
  EXPECT_FALSE(transport.join(kGroup));
}

TEST_F(UdpTest, DeclinesAGroupThatIsNone) {
  UdpTransport transport(config());
  EXPECT_FALSE(transport.join({kLoopback, 47902}));
}

TEST_F(UdpTest, WakesFromAnotherThreadAndRemembersAnEarlyWake) {
  UdpTransport transport(config());
  const auto start = std::chrono::steady_clock::now();
  transport.wake();
  transport.wait(600 * kSecond);
  std::thread waker([&] { transport.wake(); });
  transport.wait(600 * kSecond);
  waker.join();
  transport.wait(1000);  // nothing is left over: ends by its time
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(UdpTest, LosesDatagramsBothWaysWhenDecorated) {
  LossyTransport transport(std::make_unique<UdpTransport>(config()), 0.5, 0.5, 3);
  const proto::Endpoint own = send(transport, 100);
  EXPECT_GT(received_.size(), 20U);
  EXPECT_LT(received_.size(), 80U);
  const std::size_t sent = received_.size();
  EXPECT_EQ(transport.stats().injected_losses, 100 - sent);
  answer(own, 100, 60);
  const std::size_t received = drain(transport);
  EXPECT_GT(received, 20U);
  EXPECT_LT(received, 80U);
  EXPECT_EQ(transport.stats().injected_losses, 200 - sent - received);
}

TEST_F(UdpTest, LosesWholeBatchesWithoutTakingThemForTheEnd) {
  auto udp = std::make_unique<UdpTransport>(config());
  const proto::Endpoint own = send(*udp, 1);
  LossyTransport transport(std::move(udp), 0, 1, 1);
  answer(own, 200, 60);
  EXPECT_TRUE(transport.receive().empty());
  EXPECT_EQ(transport.stats().injected_losses, 200U);
}

/// There is always one datagram more.
class FloodedTransport final : public Transport {
 public:
  bool join(const proto::Endpoint&) override { return false; }
  void send(std::span<const Outgoing>) override {}
  [[nodiscard]] std::span<const Incoming> receive() override { return {&datagram_, 1}; }
  void wait(Time) override {}
  void wake() override {}
  [[nodiscard]] TransportStats stats() const override { return {}; }

 private:
  Incoming datagram_;
};

TEST(Losses, ReturnsFromAFloodOfWhichItLosesAll) {
  LossyTransport transport(std::make_unique<FloodedTransport>(), 0, 1, 1);
  EXPECT_TRUE(transport.receive().empty());
  EXPECT_EQ(transport.stats().injected_losses, 64U);
}

}  // namespace
}  // namespace natagg::worker
