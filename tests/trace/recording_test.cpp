// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What workers record of themselves: whole files that replay together, and what becomes of packets
// that cannot be recorded.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "support/loopback_aggregator.hpp"
#include "tools/trace/shard_replay.hpp"
#include "trace/capture_file.hpp"
#include "worker_api/support.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/transport/recording.hpp"

namespace natagg::tools {
namespace {

using testing::Bytes;
using testing::CaptureFile;
using testing::TemporaryPath;
using worker::Recording;

constexpr proto::Endpoint kWorker{0x0A00'0101, 40'001};
constexpr proto::Endpoint kGroup{0xEFFF'4E41, 4790};
constexpr std::int64_t kTime = 1'767'225'600'123'456'789;

void eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

std::string refusal_of(const std::vector<std::string>& paths) {
  try {
    const TraceSurvey survey(paths);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "nothing is refused";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// Files that three ranks of a job record.
class RecordedJob : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kWorld = 3;
  static constexpr std::size_t kLength = 100'000;

  /// Reduces twice. Returns what rank 0 counted at the end.
  natagg_statistics reduce(const Options& options = {}) {
    const testing::LoopbackAggregator aggregator(2);
    std::vector<natagg_statistics> statistics(kWorld);
    testing::on_all_ranks(kWorld, [&](std::uint32_t rank) {
      Options own = options;
      own.aggregators = aggregator.address();
      own.rank = rank;
      own.world = kWorld;
      own.record = paths_[rank];
      Worker worker(own);
      std::vector<float> values = testing::gradient(rank, kLength);
      for (int i = 0; i < 2; ++i) worker.allreduce(values, values);
      statistics[rank] = worker.statistics();
    });
    return statistics[0];
  }

  void expect_good(const std::vector<std::string>& paths, std::uint64_t results_seen) {
    const TraceSurvey survey(paths);
    const ReplayReport report = replay_into_shards(survey, {}, 1);
    EXPECT_TRUE(report.good(survey)) << to_text(survey, report);
    EXPECT_EQ(survey.complete_chunks(), 2 * ((kLength + 1407) / 1408));
    EXPECT_EQ(report.answers.right, survey.complete_chunks());
    EXPECT_EQ(survey.sessions().size(), 2U);
    EXPECT_GE(survey.recorded().right, results_seen * survey.complete_chunks());
    EXPECT_EQ(survey.recorded().unchecked, 0U);
  }

  TemporaryPath files_[kWorld]{TemporaryPath("rank0.pcap"), TemporaryPath("rank1.pcap"),
                               TemporaryPath("rank2.pcap")};
  std::vector<std::string> paths_{files_[0].string(), files_[1].string(), files_[2].string()};
};

TEST_F(RecordedJob, ReplaysFromTheFilesOfAllRanksTogether) {
  const natagg_statistics statistics = reduce({.values_per_packet = 1408});
  EXPECT_GE(statistics.recorded_packets, statistics.data_packets + statistics.result_packets);
  EXPECT_EQ(statistics.unrecorded_packets, 0U);
  EXPECT_EQ(statistics.record_error, 0);
  EXPECT_GE(testing::read_capture(paths_[0]).records.size(), statistics.recorded_packets);
  expect_good(paths_, kWorld);
  expect_good({paths_[2], paths_[0], paths_[1]}, kWorld);
}

TEST_F(RecordedJob, ReplaysWhereSeveralThreadsWroteEachFile) {
  EXPECT_EQ(reduce({.values_per_packet = 1408, .io_threads = 2}).io_threads, 2U);
  expect_good(paths_, kWorld);
}

TEST_F(RecordedJob, ReplaysWhatWasLostOnItsWayAndSentAgain) {
  reduce({.values_per_packet = 1408, .transmit_loss = 0.02, .receive_loss = 0.02, .loss_seed = 7});
  expect_good(paths_, kWorld);
}

TEST_F(RecordedJob, ReplaysWithPacketsThatAreInSeveralFiles) {
  reduce({.values_per_packet = 1408});
  expect_good({paths_[0], paths_[1], paths_[2], paths_[1]}, kWorld + 1);
}

TEST_F(RecordedJob, ReplaysWhereTheMachinesClocksAreOff) {
  reduce({.values_per_packet = 1408});
  for (const int rank : {0, 2}) {
    CaptureFile file = testing::read_capture(paths_[rank]);
    for (testing::Record& record : file.records) {
      record.fraction += rank == 0 ? 800'000'000 : 300'000'000;
      record.seconds += record.fraction / 1'000'000'000;
      record.fraction %= 1'000'000'000;
    }
    testing::write_capture(paths_[rank], file);
  }
  expect_good(paths_, kWorld);
}

TEST_F(RecordedJob, IsRefusedWithTheRanksThatAreMissing) {
  reduce();
  expect_contains(refusal_of({paths_[1]}), "of 3 ranks, and no JOIN of ranks 0 and 2 is in");
  expect_contains(refusal_of({paths_[0], paths_[2]}), "and no JOIN of rank 1 is in the trace");
  const TemporaryPath empty("empty.pcap");
  testing::write_capture(empty.string(), {});
  expect_contains(refusal_of({paths_[0], empty.string()}), "empty.pcap: has no natagg packet");
}

TEST_F(RecordedJob, NamesTheFileOfAPacketThatIsWrong) {
  reduce({.values_per_packet = 1408});
  CaptureFile file = testing::read_capture(paths_[1]);
  std::size_t number = 0;
  for (testing::Record& record : file.records) {
    ++number;
    const auto header = proto::read_header(std::span(record.bytes).subspan(testing::kPayloadAt));
    if (header.type != proto::Type::kResult) continue;
    record.bytes[testing::kPayloadAt + sizeof(header)] ^= std::byte{nat8::kSign};
    break;
  }
  testing::write_capture(paths_[1], file);
  const TraceSurvey survey(paths_);
  ASSERT_EQ(survey.findings().count(), 1U);
  EXPECT_EQ(survey.findings().kept()[0].packet, (PacketPlace{.number = number, .file = 2}));
  expect_contains(to_text(survey, {}), "packet " + std::to_string(number) + " of file 2: ");
}

TEST_F(RecordedJob, IsNotHarmedByAFileThatCannotBeWritten) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = 50'000, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const testing::LoopbackAggregator aggregator;
  Worker worker(
      {.aggregators = aggregator.address(), .values_per_packet = 1408, .record = paths_[0]});
  eventually([&] { return std::filesystem::file_size(paths_[0]) > testing::kFileHeader; });
  std::vector<float> values(kLength);
  eventually([&] {
    worker.allreduce(values, values);
    return worker.statistics().record_error != 0;
  });
  worker.allreduce(values, values);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const natagg_statistics statistics = worker.statistics();
  EXPECT_EQ(statistics.record_error, EFBIG);
  EXPECT_GE(statistics.unrecorded_packets, 2U * (kLength / 1408));
  // What was written is whole.
  EXPECT_EQ(testing::read_capture(paths_[0]).records.size(), statistics.recorded_packets);
  EXPECT_GT(statistics.recorded_packets, 0U);
}

// --- The file ---

Bytes payload(std::size_t size, std::uint8_t first) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

TEST(Recording, WritesFramesInTheirOrderHoweverOftenTheRingGoesRound) {
  const TemporaryPath path("recording.pcap");
  constexpr std::size_t kPackets = 200;
  {
    Recording recording(path.string(), 1, 1000);
    Recording::Track& track = recording.add_track();
    while (track.recorded() < kPackets) {
      const std::uint64_t number = track.recorded();
      track.add(kTime + static_cast<std::int64_t>(number), kWorker, kGroup,
                payload(1 + number, static_cast<std::uint8_t>(number)));
      if (track.recorded() == number) std::this_thread::yield();
    }
  }
  const CaptureFile file = testing::read_capture(path.string());
  EXPECT_EQ(file.link, 1U);
  ASSERT_EQ(file.records.size(), kPackets);
  for (std::size_t i = 0; i < kPackets; ++i) {
    const testing::Record& record = file.records[i];
    EXPECT_EQ(record.seconds, 1'767'225'600U);
    EXPECT_EQ(record.fraction, 123'456'789U + i);
    const auto datagram = find_datagram(Link::kEthernet, record.bytes);
    ASSERT_TRUE(datagram);
    EXPECT_EQ(datagram->from, kWorker);
    EXPECT_EQ(datagram->to, kGroup);
    EXPECT_EQ(Bytes(datagram->payload.begin(), datagram->payload.end()),
              payload(1 + i, static_cast<std::uint8_t>(i)));
  }
}

TEST(Recording, CountsWhatFindsNoRoom) {
  const TemporaryPath path("recording.pcap");
  {
    Recording recording(path.string(), 2, 2000);
    Recording::Track& track = recording.add_track();
    track.add(kTime, kWorker, kGroup, payload(1000, 0));
    track.add(kTime, kWorker, kGroup, payload(100, 0));
    EXPECT_EQ(track.recorded(), 1U);
    EXPECT_EQ(track.unrecorded(), 1U);
    EXPECT_EQ(track.error(), 0);
  }
  EXPECT_EQ(testing::read_capture(path.string()).records.size(), 1U);
}

TEST(Recording, SaysWhatItCannotOpen) {
  const auto refusal = [](const std::string& path) -> std::string {
    try {
      const Recording recording(path, 1);
    } catch (const worker::Error& error) {
      EXPECT_EQ(error.status(), NATAGG_SYSTEM_ERROR);
      return error.what();
    }
    return "nothing is refused";
  };
  expect_contains(refusal("/nowhere/a.pcap"),
                  "record: open(/nowhere/a.pcap): No such file or directory; the folder must");
  expect_contains(refusal("/dev/null"), "open(/dev/null): Invalid argument; it is no regular file");
  const TemporaryPath path("recording.pcap");
  const Recording other(path.string(), 1);
  expect_contains(refusal(path.string()), "another worker records to it");
}

TEST(Recording, IsReadableByItsUserAlone) {
  const TemporaryPath path("recording.pcap");
  const Recording recording(path.string(), 1);
  EXPECT_EQ(std::filesystem::status(path.string()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace
}  // namespace natagg::tools
