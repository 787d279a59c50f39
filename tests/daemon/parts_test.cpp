// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "aggregator/core/counters.hpp"
#include "aggregator/io/idle.hpp"
#include "aggregator/io/published.hpp"
#include "aggregator/report.hpp"
#include "proto/net/virtual_device.hpp"

namespace natagg::testing {
namespace {

using namespace aggregator;
using namespace aggregator::io;
using namespace net;

TEST(Idle, PoliteNapsLongerAndLongerUntilThereIsWork) {
  Idle idle(true);
  for (unsigned i = 0; i < Idle::kSpins; ++i) EXPECT_EQ(idle.next_nap(0), 0) << i;
  for (std::int64_t nap : {10'000, 20'000, 40'000, 80'000, 160'000, 200'000, 200'000}) {
    EXPECT_EQ(idle.next_nap(0), nap);
  }
  EXPECT_EQ(idle.next_nap(1), 0);
  for (unsigned i = 0; i < Idle::kSpins; ++i) EXPECT_EQ(idle.next_nap(0), 0) << i;
  EXPECT_EQ(idle.next_nap(0), 10'000);
}

TEST(Idle, PollNeverNaps) {
  Idle idle(false);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(idle.next_nap(0), 0);
}

TEST(VirtualDevice, ArgumentsAreFoundByTheirWholeName) {
  EXPECT_EQ(device_argument("iface=veth0,framesz=4096", "framesz"), 4096U);
  EXPECT_EQ(device_argument("framesz=1,qpairs=2", "qpairs"), 2U);
  EXPECT_EQ(device_argument("xframesz=1,framesz", "framesz"), std::nullopt);
  EXPECT_EQ(device_argument("", "framesz"), std::nullopt);
}

TEST(VirtualDevice, AfPacketFramesCarryTheMtusTheyCan) {
  EXPECT_EQ(af_packet_frame_size("iface=veth0"), 2048U);
  EXPECT_GE(af_packet_max_mtu(2048), 1500U);
  EXPECT_LT(af_packet_max_mtu(2048), 9000U);
  EXPECT_GE(af_packet_max_mtu(9216), 9000U);
  EXPECT_EQ(af_packet_max_mtu(16), 0U);
  EXPECT_EQ(af_packet_frames("iface=veth0"), 512U);
  EXPECT_EQ(af_packet_frames("iface=veth0,framecnt=64"), 64U);
}

TEST(VirtualDevice, OnlyDevicesOfTheKernelLeaveChecksumsPartial) {
  EXPECT_TRUE(leaves_checksums_partial("net_af_packet"));
  EXPECT_TRUE(leaves_checksums_partial("net_virtio_user"));
  EXPECT_FALSE(leaves_checksums_partial("net_memif"));
  EXPECT_FALSE(leaves_checksums_partial("mlx5_pci"));
}

TEST(VirtualDevice, OnlyAfXdpKeepsItsBuffers) {
  EXPECT_TRUE(keeps_buffers("net_af_xdp"));
  EXPECT_FALSE(keeps_buffers("net_af_packet"));
  EXPECT_FALSE(keeps_buffers("net_tap"));
}

TEST(Counters, HaveNamesOfTheirOwnThatTelemetryTakes) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < Published::kSize; ++i) {
    const std::string_view name = Published::name(i);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), name.npos) << name;
  }
  EXPECT_TRUE(names.contains("drop_udp_checksum") && names.contains("bad_magic"));
  EXPECT_LE(Published::kSize + 4, 256U);  // RTE_TEL_MAX_DICT_ENTRIES, with the device's rows
}

TEST(Counters, ArePublishedInTheirRows) {
  IoCounters io;
  io.add(IoCounter::kTxBytes, 5);
  aggregator::Counters shard;
  shard.add(Counter::kResults, 6);
  Published published;
  published.publish(io, shard, {.jobs = 1, .ready_sessions = 2, .open_slots = 3});
  for (std::size_t i = 0; i < Published::kSize; ++i) {
    const std::string_view name = Published::name(i);
    const std::uint64_t expected = name == "tx_bytes"             ? 5
                                   : name == "results"            ? 6
                                   : name == "jobs_now"           ? 1
                                   : name == "ready_sessions_now" ? 2
                                   : name == "open_slots_now"     ? 3
                                                                  : 0;
    EXPECT_EQ(published[i], expected) << name;
  }
}

TEST(Report, ShowsWhatIsNotZeroWithTotalsAndParts) {
  const std::vector<CounterRow> rows{{"first", {1, 2}}, {"second", {0, 0}}, {"third", {4}}};
  const std::vector<std::string> lines = render_report(rows);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "first                               3  (1 + 2)");
  EXPECT_EQ(lines[1], "third                               4");
}

}  // namespace
}  // namespace natagg::testing
