// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The real daemon on net_memif, with this process as the other end: what DPDK applications on one
// host would do. Frames of 9000 bytes travel in chains of 2048-byte buffers.

#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "daemon/hello.hpp"
#include "daemon/process.hpp"

namespace natagg::testing {
namespace {

using aggregator::io::MacAddress;
using aggregator::io::read_at;

std::string memif(std::uint16_t id, const char* role, const std::string& socket) {
  return "net_memif" + std::to_string(id) + ",id=" + std::to_string(id) + ",role=" + role +
         ",socket-abstract=no,socket=" + socket;
}

/// The other ends of the daemon's memifs.
class Peer {
 public:
  explicit Peer(const std::string& socket, std::uint16_t ports = 1) : ports_(ports) {
    words_ = isolated_eal(memif(0, "client", socket));
    words_.insert(words_.begin(), "peer");
    for (std::uint16_t id = 1; id < ports; ++id) {
      words_.insert(words_.end(), {"--vdev", memif(id, "client", socket)});
    }
    for (std::string& word : words_) {
      if (word.starts_with("natagg-test-")) word += "-peer";
      argv_.push_back(word.data());
    }
    if (rte_eal_init(static_cast<int>(argv_.size()), argv_.data()) < 0) return;
    pool_ = rte_pktmbuf_pool_create("peer", 4095, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    rte_eth_conf conf{};
    conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    up_ = pool_ != nullptr;
    for (std::uint16_t id = 0; id < ports && up_; ++id) {
      up_ = rte_eth_dev_configure(id, 1, 1, &conf) == 0 &&
            rte_eth_rx_queue_setup(id, 0, 1024, 0, nullptr, pool_) == 0 &&
            rte_eth_tx_queue_setup(id, 0, 1024, 0, nullptr) == 0 && rte_eth_dev_start(id) == 0;
    }
  }
  ~Peer() {
    for (std::uint16_t id = 0; id < ports_; ++id) {
      rte_eth_dev_stop(id);
      rte_eth_dev_close(id);
    }
    rte_mempool_free(pool_);
    rte_eal_cleanup();
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// What follows is by the memif of that number.
  void use(std::uint16_t id) { id_ = id; }

  [[nodiscard]] bool connected() const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    rte_eth_link link{};
    while (up_ && std::chrono::steady_clock::now() < end) {
      if (rte_eth_link_get_nowait(id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  /// Sends `frame` in pieces that fit a buffer.
  void send(std::span<const std::byte> frame) {
    rte_mbuf* first = nullptr;
    while (!frame.empty()) {
      rte_mbuf* piece = rte_pktmbuf_alloc(pool_);
      const auto size = static_cast<std::uint16_t>(
          std::min<std::size_t>(frame.size(), rte_pktmbuf_tailroom(piece)));
      std::memcpy(rte_pktmbuf_append(piece, size), frame.data(), size);
      frame = frame.subspan(size);
      if (first == nullptr) {
        first = piece;
      } else {
        rte_pktmbuf_chain(first, piece);
      }
    }
    // The daemon makes room.
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (rte_eth_tx_burst(id_, 0, &first, 1) == 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
    }
  }

  /// Takes what is there and counts it.
  std::size_t drain() {
    std::size_t frames = 0;
    std::array<rte_mbuf*, 32> burst;
    while (const std::uint16_t count = rte_eth_rx_burst(id_, 0, burst.data(), burst.size())) {
      rte_pktmbuf_free_bulk(burst.data(), count);
      frames += count;
    }
    return frames;
  }

  /// The daemon's address. Asks until it answers, as a kernel does: the first that a device sends
  /// over a link that has just come up may find no ring.
  std::optional<MacAddress> resolve() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      send(arp_frame({}));
      const Bytes answer = receive(aggregator::io::kEtherArp, std::chrono::milliseconds(100));
      if (answer.size() >= 42) return read_at<MacAddress>(answer, 6);
    }
    return std::nullopt;
  }

  /// The next frame of a type that is not an announcement; empty when none comes.
  Bytes receive(std::uint16_t ether_type = aggregator::io::kEtherIpv4,
                std::chrono::milliseconds patience = kPatience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
      rte_mbuf* mbuf = nullptr;
      if (rte_eth_rx_burst(id_, 0, &mbuf, 1) == 0) continue;
      Bytes frame(mbuf->pkt_len);
      std::size_t at = 0;
      for (const rte_mbuf* piece = mbuf; piece != nullptr; piece = piece->next) {
        std::memcpy(frame.data() + at, rte_pktmbuf_mtod(piece, const std::byte*), piece->data_len);
        at += piece->data_len;
      }
      rte_pktmbuf_free(mbuf);
      if (read_at<MacAddress>(frame, 0) != aggregator::io::kBroadcastMac &&
          read_at<proto::Be16>(frame, 12).value() == ether_type) {
        return frame;
      }
    }
    return {};
  }

 private:
  std::vector<std::string> words_;
  std::vector<char*> argv_;
  rte_mempool* pool_ = nullptr;
  std::uint16_t ports_;
  std::uint16_t id_ = 0;
  bool up_ = false;
};

TEST(DaemonOnMemif, AnswersHelloOfEverySizeUpToJumboFrames) {
  const TemporaryDirectory directory;
  const std::string socket = directory.file("memif.sock");
  std::vector<std::string> arguments = isolated_eal(memif(0, "server", socket), "0@0,1@0");
  arguments.insert(arguments.end(), {"--", "--address=10.0.0.1", "--idle=polite"});
  DaemonProcess daemon(arguments, directory.file("log"));
  ASSERT_TRUE(daemon.logged("ready: 10.0.0.1:4790-4791, 2 shards, net_memif0 mtu 9000"))
      << daemon.log();

  use_runtime_directory(directory.file(""));
  Peer peer(socket);
  ASSERT_TRUE(peer.connected()) << daemon.log();
  const auto mac = peer.resolve();
  ASSERT_TRUE(mac) << daemon.log();

  for (std::size_t size : {60, 61, 1472, 2000, 2048, 4096, 8971, 8972}) {
    for (std::uint16_t shard = 0; shard < 2; ++shard) {
      FrameSpec spec;
      spec.to_mac = *mac;
      spec.to_port = static_cast<std::uint16_t>(kOurPort + shard);
      spec.payload = hello(1, size);
      peer.send(udp_frame(spec));
      FrameSpec answer = reply_to(spec);
      answer.service = 2;  // may be marked for congestion
      answer.udp_checksum = UdpChecksum::kZero;  // it never leaves this machine
      answer.payload = offer(1, {.shards = 2, .max_values = 8832, .max_window = 256}, size);
      EXPECT_EQ(hex(peer.receive()), hex(udp_frame(answer))) << size;
    }
  }
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
  EXPECT_EQ(daemon.log().find("not given back"), std::string::npos) << daemon.log();
}

TEST(DaemonOnMemif, ServesSeveralPeersEachByItsOwnDevice) {
  constexpr std::uint16_t kPeers = 3;
  const TemporaryDirectory directory;
  const std::string socket = directory.file("memif.sock");
  std::vector<std::string> arguments = isolated_eal(memif(0, "server", socket), "0@0,1@0");
  for (std::uint16_t id = 1; id < kPeers; ++id) {
    arguments.insert(arguments.end(), {"--vdev", memif(id, "server", socket)});
  }
  arguments.insert(arguments.end(), {"--", "--address=10.0.0.1", "--idle=polite"});
  DaemonProcess daemon(arguments, directory.file("log"));
  ASSERT_TRUE(
      daemon.logged("ready: 10.0.0.1:4790-4791, 2 shards, net_memif0 mtu 9000, net_memif1 "
                    "mtu 9000, net_memif2 mtu 9000"))
      << daemon.log();

  use_runtime_directory(directory.file(""));
  Peer peer(socket, kPeers);
  std::set<std::string> macs;
  for (std::uint16_t id = 0; id < kPeers; ++id) {
    peer.use(id);
    ASSERT_TRUE(peer.connected()) << daemon.log();
    const auto mac = peer.resolve();
    ASSERT_TRUE(mac) << daemon.log();
    macs.insert(hex(std::as_bytes(std::span(mac->bytes))));
    for (std::uint16_t shard = 0; shard < 2; ++shard) {
      FrameSpec spec;
      spec.to_mac = *mac;
      spec.to_port = static_cast<std::uint16_t>(kOurPort + shard);
      spec.payload = hello(id, 8972);
      peer.send(udp_frame(spec));
      FrameSpec answer = reply_to(spec);
      answer.service = 2;  // may be marked for congestion
      answer.udp_checksum = UdpChecksum::kZero;
      answer.payload = offer(id, {.shards = 2, .max_values = 8832, .max_window = 256}, 8972);
      EXPECT_EQ(hex(peer.receive()), hex(udp_frame(answer))) << id << " " << shard;
    }
  }
  EXPECT_EQ(macs.size(), kPeers);
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
  EXPECT_EQ(daemon.log().find("not given back"), std::string::npos) << daemon.log();
}

TEST(DaemonOnMemif, CountsWhatAFullDeviceDoesNotTakeAndRecovers) {
  const TemporaryDirectory directory;
  const std::string socket = directory.file("memif.sock");
  std::vector<std::string> arguments = isolated_eal(memif(0, "server", socket), "0");
  arguments.insert(arguments.end(), {"--", "--address=10.0.0.1", "--idle=polite"});
  DaemonProcess daemon(arguments, directory.file("log"));
  ASSERT_TRUE(daemon.logged("ready:")) << daemon.log();

  use_runtime_directory(directory.file(""));
  Peer peer(socket);
  ASSERT_TRUE(peer.connected()) << daemon.log();
  const auto mac = peer.resolve();
  ASSERT_TRUE(mac) << daemon.log();
  FrameSpec spec;
  spec.to_mac = *mac;
  spec.payload = hello(1, 200);
  // Four times as many questions as the ring holds answers, none of which is taken meanwhile.
  constexpr std::size_t kQuestions = 4096;
  for (std::size_t i = 0; i < kQuestions; ++i) peer.send(udp_frame(spec));

  std::size_t answers = 0;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  Bytes last;
  do {
    answers += peer.drain();
    // Once the rest is answered, a question of another size is too.
    spec.payload = hello(2, 300);
    peer.send(udp_frame(spec));
    last = peer.receive();
    ++answers;
  } while (last.size() < 300 && std::chrono::steady_clock::now() < end);
  EXPECT_GE(last.size(), 300U) << daemon.log();
  EXPECT_LT(answers, kQuestions);
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
  EXPECT_NE(daemon.log().find("tx_drop_full"), std::string::npos) << daemon.log();
  EXPECT_EQ(daemon.log().find("not given back"), std::string::npos) << daemon.log();
}

}  // namespace
}  // namespace natagg::testing
