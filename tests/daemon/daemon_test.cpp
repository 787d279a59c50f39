// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The real daemon on net_pcap: frames in from one file, frames out to another, byte by byte.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "aggregator/io/arp.hpp"
#include "daemon/hello.hpp"
#include "daemon/pcap.hpp"
#include "daemon/process.hpp"

namespace natagg::testing {
namespace {

using aggregator::io::MacAddress;

// The daemon's address comes from net_pcap: 02:70:63:61:70 ("pcap") and the number of the port.
constexpr MacAddress kPcapMac{{0x02, 0x70, 0x63, 0x61, 0x70, 0x00}};

FrameSpec request() {
  FrameSpec spec;
  spec.to_mac = kPcapMac;
  return spec;
}

/// Pairs of a frame in and the frame it must be answered with; the second may be empty.
struct Exchange {
  const char* description;
  Bytes in;
  Bytes out;
};

std::vector<Exchange> exchanges(std::uint16_t shards) {
  std::vector<Exchange> list;
  ArpSpec arp_reply;
  arp_reply.to_mac = kTheirMac;
  arp_reply.from_mac = kPcapMac;
  arp_reply.operation = 2;
  arp_reply.sender_mac = kPcapMac;
  arp_reply.sender = kOurAddress;
  arp_reply.target_mac = kTheirMac;
  arp_reply.target = kTheirAddress;
  arp_reply.padding = 0;
  list.push_back({"ARP", arp_frame({}), arp_frame(arp_reply)});

  FrameSpec echo = request();
  echo.payload = filled(56);
  list.push_back({"echo", echo_frame(echo), echo_frame(reply_to(echo), 0)});

  for (std::uint16_t shard = 0; shard < shards; ++shard) {
    FrameSpec spec = request();
    spec.to_port = static_cast<std::uint16_t>(kOurPort + shard);
    if (shard == 1) spec.tags = {0x6007};
    const std::uint32_t job = 1000U + shard;
    spec.payload = hello(job, 1472);
    FrameSpec answer = reply_to(spec);
    answer.service = 2;  // may be marked for congestion
    answer.payload = offer(job, {.shards = shards, .max_values = 1408, .max_window = 128}, 1472);
    list.push_back({"HELLO", udp_frame(spec), udp_frame(answer)});
  }

  FrameSpec wrong = request();
  wrong.payload = hello(2000, 100);
  wrong.udp_checksum = UdpChecksum::kWrong;
  list.push_back({"HELLO with a wrong checksum", udp_frame(wrong), {}});
  FrameSpec garbage = request();
  garbage.payload = filled(200);
  list.push_back({"garbage", udp_frame(garbage), {}});
  return list;
}

void expect_golden(const std::string& lcores, std::uint16_t shards) {
  const TemporaryDirectory directory;
  const std::vector<Exchange> list = exchanges(shards);
  std::vector<Bytes> in;
  for (const Exchange& exchange : list) in.push_back(exchange.in);
  write_pcap(directory.file("in.pcap"), in);

  std::vector<std::string> arguments = isolated_eal(
      "net_pcap0,rx_pcap=" + directory.file("in.pcap") + ",tx_pcap=" + directory.file("out.pcap"),
      lcores);
  for (const char* option :
       {"--", "--address=10.0.0.1", "--idle=polite", "--max-window=128", "--stats-period-s=1"}) {
    arguments.emplace_back(option);
  }
  DaemonProcess daemon(arguments, directory.file("log"));
  ASSERT_TRUE(daemon.logged("ready: 10.0.0.1:4790-")) << daemon.log();
  // The garbage is the last frame, and the shard counts it.
  ASSERT_TRUE(daemon.logged("bad_magic")) << daemon.log();
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
  EXPECT_NE(daemon.log().find("drop_udp_checksum"), std::string::npos) << daemon.log();
  EXPECT_EQ(daemon.log().find("not given back"), std::string::npos) << daemon.log();

  std::vector<std::string> sent;
  for (const Bytes& frame : read_pcap(directory.file("out.pcap"))) sent.push_back(hex(frame));
  std::vector<std::string> expected;
  aggregator::io::Host self = kSelf;
  self.mac = kPcapMac;
  expected.push_back(hex(aggregator::io::arp_announcement(self)));
  for (const Exchange& exchange : list) {
    if (!exchange.out.empty()) expected.push_back(hex(exchange.out));
  }
  // Shards answer in any order, and the announcement has no place of its own.
  std::sort(sent.begin(), sent.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sent, expected);
}

TEST(DaemonOnPcap, AnswersEveryFrameByteForByteOnOneLcore) {
  expect_golden("0", 1);
}

TEST(DaemonOnPcap, AnswersByHandOffWhereTwoLcoresShareOneQueue) {
  expect_golden("0@0,1@0", 2);
}

TEST(DaemonOnPcap, TakesEalArgumentsFromItsConfigurationAndWritesAReadyFile) {
  const TemporaryDirectory directory;
  write_pcap(directory.file("in.pcap"), {arp_frame({})});
  std::string eal;
  for (const std::string& word : isolated_eal("net_pcap0,rx_pcap=" + directory.file("in.pcap") +
                                              ",tx_pcap=" + directory.file("out.pcap"))) {
    eal += word + " ";
  }
  std::ofstream(directory.file("ini"))
      << "address = 10.0.0.1/24\nidle = polite\neal_args = " << eal
      << "\nready_file = " << directory.file("ready") << "\nport = 5000\n";
  DaemonProcess daemon({"--config", directory.file("ini")}, directory.file("log"));
  ASSERT_TRUE(daemon.logged("ready: 10.0.0.1:5000-5000, 1 shard, net_pcap0 mtu 1500"))
      << daemon.log();
  std::string ready;
  std::getline(std::ifstream(directory.file("ready")), ready);
  EXPECT_EQ(ready.rfind("10.0.0.1:5000-5000", 0), 0U) << ready;
  daemon.signal(SIGINT);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
  EXPECT_FALSE(std::ifstream(directory.file("ready")).good());
}

TEST(DaemonOnPcap, StartsAgainAfterSigkill) {
  const TemporaryDirectory directory;
  write_pcap(directory.file("in.pcap"), {arp_frame({})});
  std::vector<std::string> arguments = isolated_eal(
      "net_pcap0,rx_pcap=" + directory.file("in.pcap") + ",tx_pcap=" + directory.file("out.pcap"));
  arguments.insert(arguments.end(), {"--", "--address=10.0.0.1", "--idle=polite"});
  {
    DaemonProcess daemon(arguments, directory.file("log1"));
    ASSERT_TRUE(daemon.logged("ready:")) << daemon.log();
    daemon.signal(SIGKILL);
    EXPECT_EQ(daemon.wait(), 128 + SIGKILL);
  }
  DaemonProcess daemon(arguments, directory.file("log2"));
  EXPECT_TRUE(daemon.logged("ready:")) << daemon.log();
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
}

/// Hugepages that are free, and a place for their files.
bool has_hugepages(unsigned wanted) {
  std::ifstream mounts("/proc/mounts");
  const std::string mounted{std::istreambuf_iterator<char>(mounts), {}};
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  unsigned pages = 0;
  return mounted.find(" hugetlbfs ") != std::string::npos && file >> pages && pages >= wanted;
}

TEST(DaemonOnHugepages, StartsAgainAfterSigkillLeftItsFiles) {
  if (!has_hugepages(2 * 48)) GTEST_SKIP() << "needs 96 free hugepages of 2 MB and hugetlbfs";
  const TemporaryDirectory directory;
  std::vector<std::string> arguments = {"--lcores",
                                        "0",
                                        "--no-pci",
                                        "--no-telemetry",
                                        "-m",
                                        "96",
                                        "--file-prefix",
                                        "natagg-test-huge",
                                        "--vdev",
                                        "net_null0",
                                        "--",
                                        "--address=10.0.0.1",
                                        "--idle=polite"};
  for (const char* log : {"log1", "log2", "log3"}) {
    DaemonProcess daemon(arguments, directory.file(log));
    ASSERT_TRUE(daemon.logged("ready:")) << daemon.log();
    daemon.signal(SIGKILL);
    EXPECT_EQ(daemon.wait(), 128 + SIGKILL);
  }
  DaemonProcess daemon(arguments, directory.file("log4"));
  EXPECT_TRUE(daemon.logged("ready:")) << daemon.log();
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0) << daemon.log();
}

struct Failure {
  const char* description;
  std::vector<std::string> arguments;
  int status;
  const char* message;
};

TEST(Daemon, FailsWithAStatusAndAMessageThatSaysWhatToDo) {
  const std::vector<std::string> null_device = isolated_eal("net_null0");
  const auto with = [&](std::vector<std::string> eal, std::vector<std::string> more) {
    eal.insert(eal.end(), {"--", "--address=10.0.0.1"});
    eal.insert(eal.end(), more.begin(), more.end());
    return eal;
  };
  std::vector<std::string> no_memory = null_device;
  std::replace(no_memory.begin(), no_memory.end(), std::string{"128"}, std::string{"4"});
  const Failure failures[] = {
      {"no address", {"--port=1"}, 2, "address = (empty): must be an IPv4 address"},
      {"unknown key", {"--no-such-key"}, 2, "unknown key --no-such-key"},
      {"no device", with(isolated_eal("net_pcap0,rx_pcap=/nonexistent"), {}), 1,
       "no network device: give EAL one"},
      {"no memory", with(no_memory, {}), 1, "give DPDK more memory"},
      {"log", with(null_device, {"--log-file=/dev/null/log"}), 1, "log_file: "},
      {"ready file", with(null_device, {"--ready-file=/dev/null/ready"}), 1,
       "ready_file /dev/null/ready cannot be written"},
      {"port", with(isolated_eal("net_null0", "0@0,1@0"), {"--port=65535"}), 1,
       "2 shards need ports up to 65536"},
      {"secondary process", with({"--proc-type=secondary"}, {}), 1, "leave out --proc-type"},
      {"unknown EAL argument", with({"--no-such-eal-argument"}, {}), 1, "rte_eal_init"},
  };
  for (const Failure& failure : failures) {
    const TemporaryDirectory directory;
    DaemonProcess daemon(failure.arguments, directory.file("log"));
    EXPECT_EQ(daemon.wait(), failure.status) << failure.description << "\n" << daemon.log();
    EXPECT_NE(daemon.log().find(failure.message), std::string::npos) << failure.description << "\n"
                                                                     << daemon.log();
  }
}

TEST(Daemon, AnswersRequestsWithoutEal) {
  const TemporaryDirectory directory;
  const std::pair<const char*, const char*> requests[] = {
      {"--help", "--member_timeout_ms"},
      {"--version", "natagg-aggregator "},
      {"--print-config", "#member_timeout_ms = 1500"},
      {"--check-config", "configuration: good"}};
  for (const auto& [request, text] : requests) {
    DaemonProcess daemon({"--address=10.0.0.1", request}, directory.file("log"));
    EXPECT_EQ(daemon.wait(), 0) << request;
    EXPECT_NE(daemon.log().find(text), std::string::npos) << request << daemon.log();
    EXPECT_EQ(daemon.log().find("EAL: "), std::string::npos) << request << daemon.log();
  }
}

}  // namespace
}  // namespace natagg::testing
