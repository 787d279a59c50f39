// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The transport over DPDK, on a net_ring, which gives back what is sent: the worker is its own
// aggregator, and the test can send it any frame.
#include "worker_lib/transport/ethdev.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "worker_lib/error.hpp"
#include "worker_lib/transport/carrier.hpp"
#include "worker_lib/transport/frame.hpp"

namespace natagg::testing {
namespace {

using worker::Carrier;
using worker::Error;
using worker::EthdevConfig;
using worker::Incoming;
using worker::kFrameHeaders;
using worker::Outgoing;
using worker::Station;
using worker::Time;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kIdentity = 0x0123'4567'89AB'CDEF;
constexpr std::uint32_t kAddress = 0x0A00'0007;
constexpr Time kSecond = 1'000'000'000;
constexpr proto::Endpoint kGroup{.address = 0xEF01'0203, .port = 4790};
constexpr std::uint16_t kPort = 0;  // DPDK's number of the only device
constexpr net::MacAddress kStranger{{0x02, 0xA, 0xB, 0xC, 0xD, 0xE}};

const proto::Endpoint kSelf = worker::make_station(kAddress, kIdentity).endpoint;

Bytes filled(std::size_t size, unsigned first = 0) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + 31 * i);
  return bytes;
}

EthdevConfig config(const std::string& device = "net_ring0") {
  return {.device = device,
          .aggregators = {kSelf},
          .local = kAddress,
          .multicast = true,
          .identity = kIdentity};
}

std::string refusal(const EthdevConfig& config) {
  try {
    static_cast<void>(worker::make_ethdev(config));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

class Ethdev : public ::testing::Test {
 protected:
  Ethdev() : carrier_(worker::make_ethdev(config())) {
    rte_ether_addr mac{};
    rte_eth_macaddr_get(kPort, &mac);
    std::copy(std::begin(mac.addr_bytes), std::end(mac.addr_bytes), self_.mac.bytes.begin());
    self_.endpoint = kSelf;
    recorder_ = rte_eth_add_tx_callback(kPort, 0, record, this);
  }
  ~Ethdev() override { rte_eth_remove_tx_callback(kPort, 0, recorder_); }

  worker::Transport& transport() { return *carrier_.transport; }

  /// What arrives within a second, until nothing more does; each in a copy.
  std::vector<Bytes> arrived() {
    transport().wait(kSecond);
    std::vector<Bytes> all;
    for (auto batch = transport().receive(); !batch.empty(); batch = transport().receive()) {
      for (const Incoming& incoming : batch) {
        EXPECT_EQ(incoming.source, kSelf);
        congested_ += incoming.congested ? 1 : 0;
        all.emplace_back(incoming.datagram.begin(), incoming.datagram.end());
      }
    }
    return all;
  }

  void send(const Bytes& datagram) {
    transport().send(std::vector<Outgoing>{{.to = kSelf, .datagram = datagram}});
  }

  /// A frame to this worker, which `change` may spoil.
  [[nodiscard]] Bytes frame(
      const Bytes& datagram, const net::MacAddress& mac, const proto::Endpoint& to,
      const std::function<void(Bytes&)>& change = [](Bytes&) {}) const {
    Bytes bytes(kFrameHeaders + datagram.size());
    worker::write_frame_headers(bytes, {.mac = kStranger, .endpoint = kSelf, .groups = {}}, mac, to,
                                datagram.size());
    std::copy(datagram.begin(), datagram.end(), bytes.begin() + kFrameHeaders);
    worker::write_udp_checksum(bytes);
    change(bytes);
    return bytes;
  }

  /// Puts a frame on the wire behind the worker's back.
  static void inject(const Bytes& bytes) {
    static rte_mempool* const pool =
        rte_pktmbuf_pool_create("test", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool);
    ASSERT_NE(mbuf, nullptr);
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    ASSERT_EQ(rte_eth_tx_burst(kPort, 0, &mbuf, 1), 1);
  }

  /// The frame that the worker has sent last.
  [[nodiscard]] const Bytes& sent() const { return sent_; }

  static std::uint16_t record(std::uint16_t, std::uint16_t, rte_mbuf* frames[], std::uint16_t count,
                              void* fixture) {
    auto& test = *static_cast<Ethdev*>(fixture);
    for (std::uint16_t i = 0; i < count; ++i) {
      const auto* const begin = rte_pktmbuf_mtod(frames[i], const std::byte*);
      const std::span bytes(begin, frames[i]->data_len);
      const bool injected = bytes.size() < worker::kArpFrame ||
                            net::read_at<net::EthernetHeader>(bytes, 0).source == kStranger;
      if (!injected) test.sent_.assign(bytes.begin(), bytes.end());
    }
    return count;
  }

  Carrier carrier_;
  Station self_;
  int congested_ = 0;
  Bytes sent_;
  const rte_eth_rxtx_callback* recorder_ = nullptr;
};

TEST_F(Ethdev, CarriesDatagramsOfEverySizeManyTimesRoundTheRings) {
  EXPECT_EQ(carrier_.mtu, 9000U);
  EXPECT_GE(carrier_.in_flight, 256U);
  for (unsigned i = 0; i < 3000; ++i) {
    const Bytes datagram = filled(i % 97 == 0 ? 8972 : 1 + i % 64, i);
    send(datagram);
    ASSERT_EQ(arrived(), std::vector<Bytes>{datagram}) << i;
  }
  EXPECT_EQ(transport().stats().send_failures, 0U);
}

TEST_F(Ethdev, CarriesManyDatagramsInOneCall) {
  std::vector<Bytes> datagrams;
  std::vector<Outgoing> outgoing;
  for (unsigned i = 0; i < 400; ++i) datagrams.push_back(filled(1 + 7 * i, i));
  for (const Bytes& datagram : datagrams) outgoing.push_back({.to = kSelf, .datagram = datagram});
  transport().send(outgoing);
  EXPECT_EQ(arrived(), datagrams);
}

TEST_F(Ethdev, CountsWhatItCannotSend) {
  send(filled(8973));
  transport().send(
      std::vector<Outgoing>{{.to = {.address = 0x0A00'0008, .port = 4790}, .datagram = {}}});
  EXPECT_EQ(transport().stats().send_failures, 2U);
  EXPECT_EQ(transport().stats().last_send_error, 0);
}

TEST_F(Ethdev, GivesUpOnADeviceThatIsFullAndGoesOnWhenItIsNot) {
  const Bytes datagram = filled(100);
  const std::vector<Outgoing> burst(64, {.to = kSelf, .datagram = datagram});
  const auto begin = std::chrono::steady_clock::now();
  while (transport().stats().send_failures == 0) transport().send(burst);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_GT(arrived().size(), 500U);
  send(datagram);
  EXPECT_EQ(arrived(), std::vector<Bytes>{datagram});
}

TEST_F(Ethdev, ReadsMarksOfCongestion) {
  inject(frame(filled(40), self_.mac, kSelf));
  EXPECT_EQ(arrived().size(), 1U);
  EXPECT_EQ(congested_, 0);
  inject(frame(filled(40), self_.mac, kSelf, [](Bytes& bytes) {
    // The header's checksum goes with it.
    bytes[15] = std::byte{3};
    bytes[25] = static_cast<std::byte>(std::to_integer<unsigned>(bytes[25]) - 1);
  }));
  EXPECT_EQ(arrived().size(), 1U);
  EXPECT_EQ(congested_, 1);
}

TEST_F(Ethdev, HearsTheGroupsThatItHasJoinedAlone) {
  const net::MacAddress mac = net::multicast_mac(kGroup.address);
  const Bytes datagram = filled(50);
  inject(frame(datagram, mac, kGroup));
  transport().wait(10'000'000);
  EXPECT_TRUE(transport().receive().empty());
  ASSERT_TRUE(transport().join(kGroup));
  inject(frame(datagram, mac, kGroup));
  inject(frame(datagram, mac, {.address = kGroup.address, .port = 1}));
  // Of the same MAC address (RFC 1112).
  inject(frame(datagram, mac, {.address = kGroup.address | 0x0080'0000, .port = kGroup.port}));
  EXPECT_EQ(arrived(), std::vector<Bytes>{datagram});
}

TEST_F(Ethdev, TellsSwitchesWhatItListensToWhenItBeginsAndWhenTheyAsk) {
  // Of 239.1.2.3 by 10.0.0.7, by hand from RFC 2236.
  const auto expect_report = [&] {
    ASSERT_EQ(sent().size(), 46U);
    EXPECT_EQ(net::read_at<net::MacAddress>(sent(), 0), net::multicast_mac(kGroup.address));
    const unsigned expected[] = {0x46, 0xC0, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x29,
                                 0x0D, 0x0A, 0x00, 0x00, 0x07, 0xEF, 0x01, 0x02, 0x03, 0x94, 0x04,
                                 0x00, 0x00, 0x16, 0x00, 0xF8, 0xFA, 0xEF, 0x01, 0x02, 0x03};
    for (std::size_t i = 0; i < std::size(expected); ++i) {
      EXPECT_EQ(std::to_integer<unsigned>(sent()[14 + i]), expected[i]) << i;
    }
    sent_.clear();
  };
  const unsigned general_query[] = {0x01, 0x00, 0x5E, 0x00, 0x00, 0x01, 0x02, 0x0A, 0x0B, 0x0C,
                                    0x0D, 0x0E, 0x08, 0x00, 0x46, 0xC0, 0x00, 0x20, 0x00, 0x00,
                                    0x00, 0x00, 0x01, 0x02, 0x3A, 0x0E, 0x0A, 0x00, 0x00, 0x09,
                                    0xE0, 0x00, 0x00, 0x01, 0x94, 0x04, 0x00, 0x00, 0x11, 0x64,
                                    0xEE, 0x9B, 0x00, 0x00, 0x00, 0x00};
  Bytes query;
  for (const unsigned byte : general_query) query.push_back(static_cast<std::byte>(byte));
  sent_.clear();
  inject(query);
  static_cast<void>(transport().receive());
  EXPECT_TRUE(sent().empty());  // it listens to nothing
  ASSERT_TRUE(transport().join(kGroup));
  expect_report();
  inject(query);
  static_cast<void>(transport().receive());
  expect_report();
  for (std::size_t at = 12; at < query.size(); ++at) {
    Bytes broken = query;
    broken[at] ^= std::byte{1};
    inject(broken);
    broken = query;
    broken.resize(at);
    inject(broken);
  }
  static_cast<void>(transport().receive());
  EXPECT_TRUE(sent().empty());
}

TEST_F(Ethdev, DropsWhatIsNotForItOrBroken) {
  const auto flip = [](std::size_t at) {
    return [at](Bytes& bytes) { bytes[at] ^= std::byte{1}; };
  };
  inject(frame(filled(50), kStranger, kSelf));
  inject(frame(filled(50), self_.mac, {.address = kAddress, .port = 1}));
  inject(frame(filled(50), self_.mac, {.address = kAddress + 1, .port = kSelf.port}));
  for (const std::size_t at : {12, 14, 17, 20, 23, 24, 38, 40, 70}) {
    inject(frame(filled(50), self_.mac, kSelf, flip(at)));
  }
  for (const std::size_t size : {1, 13, 14, 33, 41, 80}) {
    Bytes cut = frame(filled(50), self_.mac, kSelf);
    cut.resize(size);
    inject(cut);
  }
  const Bytes good = filled(60);
  inject(frame(good, self_.mac, kSelf));
  EXPECT_EQ(arrived(), std::vector<Bytes>{good});
}

TEST_F(Ethdev, SendsWholeHeadersWithRightChecksums) {
  const Bytes datagram = filled(33);
  send(datagram);
  const Bytes& bytes = sent();
  ASSERT_EQ(bytes.size(), kFrameHeaders + datagram.size());
  const auto received = worker::read_frame(bytes, self_);
  const auto* const read = std::get_if<worker::Datagram>(&received);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(Bytes(read->bytes.begin(), read->bytes.end()), datagram);
  EXPECT_EQ(net::read_at<net::EthernetHeader>(bytes, 0).source, self_.mac);
  EXPECT_NE(net::read_at<net::UdpHeader>(bytes, 34).checksum.value(), 0);
}

TEST_F(Ethdev, TellsWhoAsksWhereItIs) {
  Station asker{.mac = kStranger, .endpoint = {.address = 0x0A00'0009, .port = 0}, .groups = {}};
  Bytes question(worker::kArpFrame);
  worker::write_arp_request(question, asker, kAddress);
  inject(question);
  static_cast<void>(transport().receive());
  const Bytes answer = sent();
  ASSERT_EQ(answer.size(), worker::kArpFrame);
  const auto arp = net::read_at<net::ArpPacket>(answer, sizeof(net::EthernetHeader));
  EXPECT_EQ(net::read_at<net::EthernetHeader>(answer, 0).destination, kStranger);
  EXPECT_EQ(arp.operation.value(), 2);
  EXPECT_EQ(arp.sender_mac, self_.mac);
  EXPECT_EQ(arp.sender_address.value(), kAddress);
  EXPECT_EQ(arp.target_address.value(), 0x0A00'0009U);
  asker.endpoint.address += 1;
  worker::write_arp_request(question, asker, kAddress + 1);
  inject(question);
  static_cast<void>(transport().receive());
  EXPECT_EQ(sent(), answer);  // still
}

TEST_F(Ethdev, FollowsAnAggregatorThatMoves) {
  // Another machine announces that it has the aggregator's address now.
  const Station machine{.mac = kStranger, .endpoint = kSelf, .groups = {}};
  Bytes announcement(worker::kArpFrame);
  worker::write_arp_request(announcement, machine, kAddress + 1);
  inject(announcement);
  static_cast<void>(transport().receive());
  send(filled(10));
  EXPECT_EQ(net::read_at<net::EthernetHeader>(sent(), 0).destination, kStranger);
}

TEST_F(Ethdev, SleepsUntilItIsWoken) {
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    transport().wake();
  });
  const auto begin = std::chrono::steady_clock::now();
  transport().wait(60 * kSecond);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
  waker.join();
}

TEST_F(Ethdev, IsRefusedToASecondWorker) {
  const std::string reason = refusal(config());
  EXPECT_NE(reason.find("rte_eth_dev_owner_set(net_ring0)"), std::string::npos) << reason;
  EXPECT_NE(reason.find("another worker of this process has the device"), std::string::npos)
      << reason;
  // To whom nothing has happened.
  send(filled(10));
  EXPECT_EQ(arrived().size(), 1U);
}

TEST(EthdevStart, LeavesAffinityAndSignalsOfTheCallerAlone) {
  const auto affinity = [] {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof cpus, &cpus);
    return CPU_COUNT(&cpus);
  };
  const int before = affinity();
  const Carrier carrier = worker::make_ethdev(config());
  EXPECT_EQ(affinity(), before);
}

TEST(EthdevStart, ServesSeveralWorkersOfAProcess) {
  const Carrier carriers[] = {worker::make_ethdev(config("net_ring1")),
                              worker::make_ethdev(config("net_ring2"))};
  for (const Carrier& carrier : carriers) {
    const Bytes datagram = filled(1000);
    carrier.transport->send(std::vector<Outgoing>{{.to = kSelf, .datagram = datagram}});
    carrier.transport->wait(kSecond);
    EXPECT_EQ(carrier.transport->receive().size(), 1U);
  }
}

TEST(EthdevStart, NamesTheDeviceThatCannotBeHadAndTheRemedy) {
  const std::string reason = refusal(config("net_af_packet0,iface=no-such"));
  EXPECT_NE(reason.find("rte_dev_probe(net_af_packet0,iface=no-such) failed"), std::string::npos)
      << reason;
  EXPECT_NE(reason.find("`ip link` lists the kernel's interfaces"), std::string::npos) << reason;
  EXPECT_NE(refusal(config("nonsense")).find("failed to parse device \"nonsense\""),
            std::string::npos)
      << refusal(config("nonsense"));
  EXPECT_NE(refusal(config("net_memif0,role=client")).find("memif:PATH,id=N"), std::string::npos);
}

TEST(EthdevStart, IsRefusedInAForkedChild) {
  { const Carrier carrier = worker::make_ethdev(config()); }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      static_cast<void>(worker::make_ethdev(config()));
    } catch (const Error& error) {
      ::_exit(error.status() == NATAGG_WRONG_PROCESS ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace natagg::testing
