// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the reader of traces finds in files of other tools, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "proto/packet.hpp"
#include "tools/trace/trace_reader.hpp"
#include "tools/trace/trace_writer.hpp"
#include "trace/capture_file.hpp"

namespace natagg::tools {
namespace {

using testing::Bytes;
using testing::CaptureFile;
using testing::Record;

constexpr std::int64_t kTime = 1'767'225'600'123'456'789;
constexpr proto::Endpoint kWorker{0x0A00'0101, 40'001};
constexpr proto::Endpoint kShard{0x0A00'0001, 4790};
constexpr std::uint32_t kRawIpv4 = 228;
constexpr std::uint32_t kCooked = 113;
constexpr std::uint32_t kCooked2 = 276;

Bytes heartbeat(std::uint32_t job) {
  proto::Header header = proto::make_header(proto::Type::kHeartbeat);
  header.job = proto::Be32{job};
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return {bytes.begin(), bytes.end()};
}

Bytes data(std::uint16_t count) {
  proto::Header header = proto::make_header(proto::Type::kData);
  header.count = proto::Be16{count};
  header.fingerprint = proto::Be64{count};
  const auto bytes = std::as_bytes(std::span(&header, 1));
  Bytes datagram(bytes.begin(), bytes.end());
  datagram.resize(datagram.size() + count);
  return datagram;
}

class Reader : public ::testing::Test {
 protected:
  /// Three packets between a worker and a shard, as TraceWriter writes them.
  CaptureFile three_packets() {
    TraceWriter writer(path_.string());
    writer.write(kTime, kWorker, kShard, heartbeat(1));
    writer.write(kTime + 1, kShard, kWorker, heartbeat(2));
    writer.write(kTime + 1000, kWorker, kShard, data(128));
    writer.close();
    return testing::read_capture(path_.string());
  }

  struct Read {
    std::vector<std::uint64_t> numbers;
    std::vector<std::int64_t> times;
    std::vector<proto::Endpoint> sources;
    std::vector<Bytes> datagrams;
    std::uint64_t foreign = 0;
  };

  Read read() {
    TraceReader reader(path_.string());
    Read all;
    while (const auto packet = reader.next()) {
      all.numbers.push_back(packet->place.number);
      all.times.push_back(packet->time);
      all.sources.push_back(packet->from);
      all.datagrams.emplace_back(packet->datagram.begin(), packet->datagram.end());
    }
    all.foreign = reader.foreign();
    return all;
  }

  void expect_three(const Read& read) {
    EXPECT_EQ(read.numbers, (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_EQ(read.sources, (std::vector{kWorker, kShard, kWorker}));
    EXPECT_EQ(read.datagrams, (std::vector{heartbeat(1), heartbeat(2), data(128)}));
  }

  /// The error of reading, which must come.
  std::string refusal() {
    try {
      static_cast<void>(read());
    } catch (const TraceError& error) {
      return error.what();
    }
    return "nothing is refused";
  }

  testing::TemporaryPath path_{"reader.pcap"};
};

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Reader, FindsWhatTheWriterWrote) {
  three_packets();
  const Read all = read();
  expect_three(all);
  EXPECT_EQ(all.times, (std::vector{kFirstPacket, kFirstPacket + 1, kFirstPacket + 1000}));
  EXPECT_EQ(all.foreign, 0U);
}

TEST_F(Reader, FindsPacketsOnEveryLinkAndBehindTags) {
  const CaptureFile ethernet = three_packets();
  const Bytes tag{std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{5}};
  const Bytes outer{std::byte{0x88}, std::byte{0xA8}, std::byte{0}, std::byte{6}};
  const Bytes ipv4{std::byte{8}, std::byte{0}};
  struct Case {
    std::uint32_t link;
    Bytes head;  // in the place of the Ethernet header
  };
  const auto joined = [](std::initializer_list<Bytes> parts) {
    Bytes all;
    for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  Bytes cooked2(20);
  std::ranges::copy(ipv4, cooked2.begin());
  for (const Case& c :
       {Case{1, joined({Bytes(12), tag, ipv4})}, Case{1, joined({Bytes(12), outer, tag, ipv4})},
        Case{kRawIpv4, {}}, Case{kCooked, joined({Bytes(14), ipv4})}, Case{kCooked2, cooked2}}) {
    CaptureFile file{.link = c.link, .records = ethernet.records};
    for (Record& record : file.records) {
      record.bytes.erase(record.bytes.begin(), record.bytes.begin() + testing::kIpAt);
      record.bytes.insert(record.bytes.begin(), c.head.begin(), c.head.end());
      record.length = static_cast<std::uint32_t>(record.bytes.size());
    }
    testing::write_capture(path_.string(), file);
    SCOPED_TRACE(c.link);
    expect_three(read());
  }
}

TEST_F(Reader, FindsPacketsInPcapngAndBehindIpOptionsAndInPaddedFrames) {
  CaptureFile file = three_packets();
  for (Record& record : file.records) {
    Bytes& bytes = record.bytes;
    bytes[testing::kIpAt] = std::byte{0x46};  // a word of options
    bytes.insert(bytes.begin() + testing::kUdpAt, 4, std::byte{1});
    bytes.resize(bytes.size() + 7);
    record.length = static_cast<std::uint32_t>(bytes.size());
  }
  testing::write_pcapng(path_.string(), file);
  const Read all = read();
  expect_three(all);
  EXPECT_EQ(all.times, (std::vector{kFirstPacket, kFirstPacket, kFirstPacket + 1000}));
}

TEST_F(Reader, TakesTimesOfAnyCentury) {
  CaptureFile file = three_packets();
  for (Record& record : file.records) record.seconds += 10'000'000'000;  // beyond 2^63 ns
  testing::write_pcapng(path_.string(), file);
  EXPECT_EQ(read().times, (std::vector{kFirstPacket, kFirstPacket, kFirstPacket + 1000}));
}

TEST_F(Reader, RefusesTimesThatAreTenYearsApart) {
  CaptureFile file = three_packets();
  file.records[1].seconds += 400'000'000;
  testing::write_pcapng(path_.string(), file);
  expect_contains(refusal(), "packet 2 was captured more than ten years before or after the first");
}

TEST_F(Reader, PassesOverWhatIsNotNatagg) {
  CaptureFile file = three_packets();
  const Record packet = file.records[0];
  const auto other = [&](std::size_t at, unsigned value) {
    Record changed = packet;
    changed.bytes[at] = static_cast<std::byte>(value);
    file.records.push_back(changed);
  };
  other(13, 6);                        // ARP
  other(testing::kIpAt + 9, 6);        // TCP
  other(testing::kIpAt, 0x65);         // IPv6
  other(testing::kIpAt + 7, 8);        // a later fragment
  other(testing::kPayloadAt, 0);       // another magic
  other(testing::kPayloadAt + 3, 99);  // an unknown type
  other(testing::kUdpAt + 5, 9);       // one byte of payload
  file.records.push_back({.seconds = 1, .fraction = 0, .length = 60, .bytes = Bytes(10)});
  file.records.push_back(packet);
  testing::write_capture(path_.string(), file);
  const Read all = read();
  EXPECT_EQ(all.numbers, (std::vector<std::uint64_t>{1, 2, 3, 12}));
  EXPECT_EQ(all.foreign, 8U);
}

TEST_F(Reader, TakesApartWhatASendingHostShowsAsOne) {
  Bytes three = data(128);
  for (const std::uint16_t count : {std::uint16_t{128}, std::uint16_t{5}}) {
    const Bytes more = data(count);
    three.insert(three.end(), more.begin(), more.end());
  }
  TraceWriter writer(path_.string());
  writer.write(kTime, kWorker, kShard, three);
  writer.close();
  const Read all = read();
  EXPECT_EQ(all.datagrams, (std::vector{data(128), data(128), data(5)}));
  EXPECT_EQ(all.numbers, (std::vector<std::uint64_t>{1, 1, 1}));
}

TEST_F(Reader, RefusesPacketsThatTheCaptureCut) {
  for (const std::size_t size : {testing::kPayloadAt, testing::kPayloadAt + 44}) {
    CaptureFile file = three_packets();
    file.records[2].bytes.resize(size);
    testing::write_capture(path_.string(), file);
    const std::string text = refusal();
    expect_contains(text, "packet 3 is cut to");
    expect_contains(text, "of 172 bytes: record with tcpdump -s 0");
  }
}

TEST_F(Reader, RefusesFragments) {
  CaptureFile file = three_packets();
  file.records[1].bytes[testing::kIpAt + 6] = std::byte{0x20};
  testing::write_capture(path_.string(), file);
  expect_contains(refusal(), "packet 2 is an IP fragment");
}

TEST_F(Reader, RefusesAuthenticatedPackets) {
  Bytes datagram = heartbeat(1);
  datagram[43] = std::byte{proto::kFlagAuthenticated};
  datagram.resize(datagram.size() + proto::kTrailerBytes);
  TraceWriter writer(path_.string());
  writer.write(kTime, kWorker, kShard, datagram);
  writer.close();
  expect_contains(refusal(), "packet 1 is authenticated");
}

TEST_F(Reader, RefusesLinksThatItDoesNotKnow) {
  CaptureFile file = three_packets();
  file.link = 105;  // IEEE 802.11
  testing::write_capture(path_.string(), file);
  expect_contains(refusal(), "its link type is IEEE802_11 (105)");
}

TEST_F(Reader, RefusesFilesThatAreNoCaptureOrEndInAPacket) {
  testing::write_file(path_.string(), Bytes(100));
  expect_contains(refusal(), "cannot read the trace");
  three_packets();
  std::filesystem::resize_file(path_.string(), std::filesystem::file_size(path_.string()) - 1);
  expect_contains(refusal(), "packet 3 cannot be read");
  std::filesystem::remove(path_.string());
  expect_contains(refusal(), "cannot read the trace");
}

TEST(Writer, SaysWhatItCannotWrite) {
  EXPECT_THROW(TraceWriter("/nowhere/trace.pcap"), std::runtime_error);
  TraceWriter full("/dev/full");
  full.write(kTime, kWorker, kShard, data(128));
  EXPECT_THROW(full.close(), std::runtime_error);
}

}  // namespace
}  // namespace natagg::tools
