// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The memif transport against a server's end that the test plays.
#include "worker_lib/transport/memif.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "worker_api/memif_server.hpp"
#include "worker_lib/error.hpp"

namespace natagg::testing {
namespace {

using worker::Incoming;
using worker::MemifTransport;
using worker::Outgoing;
using worker::Station;
using worker::Time;

constexpr net::MacAddress kAggregatorMac{{0x02, 0xA, 0xB, 0xC, 0xD, 0xE}};
constexpr proto::Endpoint kAggregator{.address = 0x0A00'0001, .port = 4790};
constexpr Time kSecond = 1'000'000'000;

Frame filled(std::size_t size, unsigned first = 0) {
  Frame bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + 31 * i);
  return bytes;
}

class MemifTest : public ::testing::Test {
 protected:
  MemifTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "natagg-memif-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/socket";
  }
  ~MemifTest() override { std::filesystem::remove_all(directory_); }

  void start_server() {
    server_.reset();
    std::filesystem::remove(path_);
    server_.emplace(path_);
  }

  /// Until the link is up and the client knows the aggregator's address.
  void connect() {
    if (!server_) start_server();
    until([&] { return server_->connected(); });
    std::optional<Frame> question;
    until([&] {
      for (Frame& frame : server_->take()) question = std::move(frame);
      return question.has_value();
    });
    const auto ethernet = net::read_at<net::EthernetHeader>(*question, 0);
    ASSERT_EQ(ethernet.destination, net::kBroadcastMac);
    auto arp = net::read_at<net::ArpPacket>(*question, sizeof ethernet);
    ASSERT_EQ(arp.target_address.value(), kAggregator.address);
    self_ = {.mac = ethernet.source, .endpoint = {.address = arp.sender_address.value()}};
    arp.operation = proto::Be16{2};
    std::swap(arp.sender_address, arp.target_address);
    arp.target_mac = self_.mac;
    arp.sender_mac = kAggregatorMac;
    Frame answer(worker::kArpFrame);
    net::write_at(answer, 0,
                  net::EthernetHeader{.destination = self_.mac,
                                      .source = kAggregatorMac,
                                      .type = proto::Be16{net::kEtherArp}});
    net::write_at(answer, sizeof ethernet, arp);
    until([&] { return server_->put({answer}); });
    EXPECT_TRUE(client_->receive().empty());
    // The first datagram tells the client's port.
    const Frame first = exchange_out(filled(10));
    self_.endpoint.port = net::read_at<net::UdpHeader>(first, 34).source.value();
  }

  template <typename Condition>
  void until(Condition condition) {
    if (!client_) client_.emplace(config());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      server_->step();
      static_cast<void>(client_->receive());
      client_->wait(100'000);
    }
  }

  [[nodiscard]] worker::MemifConfig config() const {
    return {.address = {.path = path_, .id = 3},
            .aggregators = {kAggregator, {.address = kAggregator.address, .port = 4800}},
            .identity = 0x0123'4567'89AB'CDEF};
  }

  /// Sends one datagram; the frame of it as the server gets it.
  Frame exchange_out(const Frame& datagram) {
    client_->send(std::vector<Outgoing>{{.to = kAggregator, .datagram = datagram}});
    const std::vector<Frame> frames = server_->take();
    EXPECT_EQ(frames.size(), 1U);
    return frames.empty() ? Frame(64) : frames.front();
  }

  /// A frame from the aggregator to the client.
  [[nodiscard]] Frame inbound(const Frame& datagram) const {
    Frame frame(worker::kFrameHeaders + datagram.size());
    worker::write_frame_headers(frame, {.mac = kAggregatorMac, .endpoint = kAggregator}, self_.mac,
                                self_.endpoint, datagram.size());
    std::copy(datagram.begin(), datagram.end(), frame.begin() + worker::kFrameHeaders);
    return frame;
  }

  std::string directory_;
  std::string path_;
  std::optional<MemifServer> server_;
  std::optional<MemifTransport> client_;
  Station self_;
};

TEST_F(MemifTest, CarriesDatagramsOfEverySizeManyTimesRoundTheRings) {
  connect();
  EXPECT_EQ(std::uint32_t{server_->init().id}, 3U);
  // Ring numbers have 16 bits and wrap too.
  const unsigned rounds = 66'000;
  for (unsigned i = 0; i < rounds; ++i) {
    const Frame datagram = filled(i % 97 == 0 ? 8972 : 1 + i % 64, i);
    const Frame sent = exchange_out(datagram);
    ASSERT_TRUE(std::equal(datagram.begin(), datagram.end(), sent.begin() + worker::kFrameHeaders,
                           sent.end()));
    ASSERT_TRUE(server_->put({inbound(datagram)}));
    const std::span<const Incoming> got = client_->receive();
    ASSERT_EQ(got.size(), 1U);
    ASSERT_EQ(got[0].source, kAggregator);
    ASSERT_TRUE(std::ranges::equal(got[0].datagram, datagram));
    ASSERT_TRUE(client_->receive().empty());
  }
  EXPECT_EQ(client_->stats().last_send_error, 0);
}

TEST_F(MemifTest, PutsFramesTogetherThatCameInPieces) {
  connect();
  const Frame datagram = filled(5000);
  const Frame frame = inbound(datagram);
  const std::span<const std::byte> all(frame);
  ASSERT_TRUE(server_->put({all.first(42), all.subspan(42, 2000), all.subspan(2042)}));
  ASSERT_TRUE(server_->put({all.first(42), all.subspan(42)}));
  const std::span<const Incoming> got = client_->receive();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(got[0].datagram, datagram));
  EXPECT_TRUE(std::ranges::equal(got[1].datagram, datagram));
}

TEST_F(MemifTest, BelievesNothingThatTheOtherEndWritesIntoItsMemory) {
  connect();
  for (const std::uint32_t length : {0U, 13U, 41U, 60'000U, ~0U}) {
    for (const unsigned flags : {0U, 1U, 0xFFFFU}) {
      server_->lie(server_->ring_size(), static_cast<std::uint16_t>(flags), length, ~0U);
      while (client_->receive().size() > 0) {
      }
      static_cast<void>(client_->receive());  // gives back the last
    }
  }
  const Frame datagram = filled(100);
  ASSERT_TRUE(server_->put({inbound(datagram)}));
  const std::span<const Incoming> got = client_->receive();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(std::ranges::equal(got[0].datagram, datagram));
}

TEST_F(MemifTest, DropsFramesForOthersAndBrokenOnes) {
  connect();
  const Frame good = inbound(filled(100));
  const auto broken = [&](std::size_t at) {
    Frame frame = good;
    frame[at] ^= std::byte{0x10};
    return frame;
  };
  // MAC address, type, version, length, checksum, protocol, destination, port, UDP's length.
  for (const std::size_t at : {0, 12, 14, 17, 20, 23, 24, 33, 37, 39}) {
    ASSERT_TRUE(server_->put({broken(at)}));
    EXPECT_TRUE(client_->receive().empty()) << at;
  }
  ASSERT_TRUE(server_->put({std::span(good).first(60)}));
  EXPECT_TRUE(client_->receive().empty());
  Frame sum = good;
  sum[40] = std::byte{0x12};  // a UDP checksum, where there was none
  ASSERT_TRUE(server_->put({sum}));
  EXPECT_TRUE(client_->receive().empty());
}

TEST_F(MemifTest, CountsWhatAFullRingDoesNotTake) {
  connect();
  const Frame datagram = filled(100);
  const std::size_t size = server_->ring_size();
  std::vector<Outgoing> many(size + 1, Outgoing{.to = kAggregator, .datagram = datagram});
  const std::uint64_t before = client_->stats().send_failures;
  client_->send(many);
  EXPECT_EQ(client_->stats().send_failures, before + 1);
  EXPECT_EQ(server_->take().size(), size);
  const Frame too_long = filled(8973);
  client_->send(std::vector<Outgoing>{{.to = kAggregator, .datagram = too_long}});
  EXPECT_EQ(client_->stats().send_failures, before + 2);
}

TEST_F(MemifTest, SleepsUntilTheDoorbellOrAWakeOrTheEnd) {
  connect();
  const auto timed = [&](Time nanoseconds) {
    const auto start = std::chrono::steady_clock::now();
    client_->wait(nanoseconds);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // A frame that is there, and one that comes with the doorbell while the client sleeps.
  ASSERT_TRUE(server_->put({inbound(filled(10))}));
  EXPECT_LT(timed(kSecond), 0.5);
  EXPECT_EQ(client_->receive().size(), 1U);
  std::thread other([&] {
    while (!server_->client_wants_interrupts()) std::this_thread::yield();
    server_->put({inbound(filled(10))});
    server_->ring_doorbell();
  });
  std::size_t got = 0;
  for (int i = 0; i < 1000 && got == 0; ++i) {
    client_->wait(kSecond);
    got = client_->receive().size();
  }
  other.join();
  EXPECT_EQ(got, 1U);
  EXPECT_FALSE(server_->client_wants_interrupts());
  client_->wake();
  EXPECT_LT(timed(kSecond), 0.5);
}

TEST_F(MemifTest, ConnectsAnewWhenTheServerComesBack) {
  connect();
  server_->hang_up();
  until([&] { return client_->stats().last_send_error != 0 || server_->connected(); });
  start_server();
  connect();
  EXPECT_EQ(exchange_out(filled(20)).size(), 20 + worker::kFrameHeaders);
  EXPECT_EQ(client_->stats().last_send_error, 0);
}

TEST_F(MemifTest, SaysWhyTheLinkIsNotUp) {
  client_.emplace(config());
  EXPECT_EQ(client_->stats().last_send_error, ENOENT);
  client_->send(std::vector<Outgoing>{{.to = kAggregator, .datagram = {}}});
  EXPECT_EQ(client_->stats().send_failures, 1U);
  start_server();
  const std::pair<const char*, int> refusals[] = {
      {"ID not found", ENODEV}, {"Already connected", EBUSY}, {"Incorrect secret", EACCES}};
  for (const auto& [text, problem] : refusals) {
    server_->refusal = text;
    until([&] { return client_->stats().last_send_error == problem; });
  }
  server_->refusal.clear();
  server_->version = 3 << 8;
  until([&] { return client_->stats().last_send_error == EPROTONOSUPPORT; });
  server_->version = worker::memif::kVersion;
  server_->max_log2_ring_size = 4;
  connect();
  EXPECT_EQ(server_->ring_size(), 16);
}

TEST(MemifAddress, IsAPathAndANumber) {
  const auto plain = worker::parse_memif("/run/x.sock");
  EXPECT_EQ(plain.path, "/run/x.sock");
  EXPECT_EQ(plain.id, 0U);
  EXPECT_EQ(worker::parse_memif("/run/x.sock,id=4294967295").id, 0xFFFF'FFFF);
  for (const char* bad :
       {"", ",id=1", "/x,id=", "/x,id=-1", "/x,id=4294967296", "/x,ID=1", "/x,"}) {
    EXPECT_THROW(static_cast<void>(worker::parse_memif(bad)), worker::Error) << bad;
  }
}

}  // namespace
}  // namespace natagg::testing
