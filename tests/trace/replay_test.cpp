// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Traces that are generated and replayed, whole and with faults: what the replay says of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "support/loopback_aggregator.hpp"
#include "tools/reference.hpp"
#include "tools/tensor_data.hpp"
#include "tools/trace/shard_replay.hpp"
#include "tools/trace/trace_generator.hpp"
#include "tools/trace/udp_replay.hpp"
#include "trace/capture_file.hpp"

namespace natagg::tools {
namespace {

using proto::Type;
using testing::CaptureFile;
using testing::Record;

TraceJobOptions job(std::uint32_t world, std::size_t count, std::size_t operations = 1) {
  TraceJobOptions options;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    options.inputs.push_back(generate_tensor(DataType::kFloat32, 1, rank, count));
  }
  options.operations = operations;
  return options;
}

TraceJobOptions faulty(TraceJobOptions options) {
  options.network.loss = 0.03;
  options.network.duplication = 0.03;
  options.network.reordering = 0.05;
  return options;
}

proto::Header header_of(const Record& record) {
  return proto::read_header(std::span(record.bytes).subspan(testing::kPayloadAt));
}

bool comes_from_aggregator(const Record& record) {
  return record.bytes[testing::kIpAt + 15] == std::byte{1} &&
         record.bytes[testing::kIpAt + 13] == std::byte{0};
}

class Replay : public ::testing::Test {
 protected:
  CaptureFile generate(const TraceJobOptions& options) {
    trace_ = generate_trace(options, path_.string());
    return testing::read_capture(path_.string());
  }

  void write(const CaptureFile& file) { testing::write_capture(path_.string(), file); }

  /// Replays the trace once or more, and expects that nothing is wrong.
  ReplayReport expect_good(std::uint64_t loops = 1) {
    const TraceSurvey survey(path_.string());
    const ReplayReport report = replay_into_shards(survey, {}, loops);
    EXPECT_TRUE(report.good(survey)) << to_text(survey, report);
    EXPECT_EQ(report.answers.right, loops * survey.complete_chunks());
    EXPECT_GT(report.answers.right, 0U);
    EXPECT_EQ(report.latency.count(), report.packets);
    return report;
  }

  std::string refusal() {
    try {
      const TraceSurvey survey(path_.string());
    } catch (const TraceError& error) {
      return error.what();
    }
    return "nothing is refused";
  }

  testing::TemporaryPath path_{"replay.pcap"};
  GeneratedTrace trace_;
};

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Replay, OfEveryLayoutHasNothingWrong) {
  struct Layout {
    std::uint32_t world;
    std::uint16_t shards;
    std::uint16_t jobs;
    std::size_t mtu;
    std::size_t count;
    bool faults;
  };
  for (const Layout& layout :
       {Layout{1, 1, 1, 1500, 1, false}, Layout{2, 1, 1, 1500, 1409, false},
        Layout{3, 2, 1, 9000, 100'000, true}, Layout{4, 4, 2, 1500, 60'000, true},
        Layout{9, 1, 2, 1500, 30'000, true}}) {
    TraceJobOptions options = job(layout.world, layout.count, 2);
    options.shards = layout.shards;
    options.jobs = layout.jobs;
    options.mtu = layout.mtu;
    options.window = 16;
    if (layout.faults) options = faulty(options);
    const CaptureFile file = generate(options);
    SCOPED_TRACE("world " + std::to_string(layout.world));
    EXPECT_EQ(file.records.size(), trace_.packets);
    EXPECT_EQ(trace_.retransmissions != 0, layout.faults);
    const ReplayReport report = expect_good(2);
    const TraceSurvey survey(path_.string());
    EXPECT_EQ(survey.packets(), trace_.packets);
    EXPECT_GE(survey.recorded().right, survey.complete_chunks() * layout.world);
    EXPECT_EQ(survey.recorded().unchecked, 0U);
    EXPECT_GE(report.data_packets, report.answers.right * layout.world);
  }
}

TEST_F(Replay, OfEveryTypeAndRoundingHasNothingWrong) {
  for (const DataType type : {DataType::kFloat64, DataType::kFloat16, DataType::kBfloat16}) {
    TraceJobOptions options;
    options.inputs = {generate_tensor(type, 1, 0, 5000), generate_tensor(type, 1, 1, 5000)};
    options.rounding = proto::Rounding::kNearest;
    options.shift = 5;
    options.reduction = proto::Reduction::kAverage;
    generate(options);
    expect_good();
  }
}

TEST(Generator, ReducesToTheDefinitionsBits) {
  const testing::TemporaryPath path("generator.pcap");
  TraceJobOptions options = faulty(job(3, 20'000, 5));
  options.jobs = 2;
  std::multiset<std::pair<std::size_t, std::uint16_t>> seen;
  options.on_result = [&](std::size_t operation, std::uint16_t rank, const Tensor& result) {
    seen.emplace(operation, rank);
    EXPECT_EQ(result, reference_allreduce(options.inputs,
                                          {.seed = options.seed,
                                           .operation = static_cast<std::uint32_t>(operation)}));
  };
  generate_trace(options, path.string());
  EXPECT_EQ(seen.size(), 5U * 3U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), seen.size());
}

TEST(Generator, MakesTheSameTraceFromTheSameSeeds) {
  const testing::TemporaryPath one("one.pcap");
  const testing::TemporaryPath other("other.pcap");
  TraceJobOptions options = faulty(job(3, 20'000));
  generate_trace(options, one.string());
  generate_trace(options, other.string());
  const auto bytes_of = [](const testing::TemporaryPath& path) {
    std::vector<testing::Bytes> all;
    for (const Record& record : testing::read_capture(path.string()).records) {
      all.push_back(record.bytes);
    }
    return all;
  };
  EXPECT_EQ(bytes_of(one), bytes_of(other));
  options.network.seed = 2;
  generate_trace(options, other.string());
  EXPECT_NE(bytes_of(one), bytes_of(other));
}

TEST_F(Replay, NamesThePacketOfARecordedResultThatIsWrong) {
  CaptureFile file = generate(job(3, 20'000));
  const auto result = std::ranges::find_if(
      file.records, [](const Record& record) { return header_of(record).type == Type::kResult; });
  std::byte& value = result->bytes[testing::kPayloadAt + sizeof(proto::Header) + 7];
  value ^= std::byte{nat8::kSign};
  write(file);
  const TraceSurvey survey(path_.string());
  const ReplayReport report = replay_into_shards(survey, {}, 1);
  EXPECT_FALSE(report.good(survey));
  EXPECT_EQ(survey.recorded().wrong, 1U);
  ASSERT_EQ(survey.findings().count(), 1U);
  const Finding& finding = survey.findings().kept()[0];
  EXPECT_EQ(finding.packet.number, static_cast<std::uint64_t>(result - file.records.begin()) + 1);
  expect_contains(finding.text, "RESULT, sequence");
  expect_contains(finding.text, "value 7 is");
  // The live aggregator is right all the same.
  EXPECT_EQ(report.answers.right, survey.complete_chunks());
  EXPECT_EQ(report.answers.wrong + report.answers.missing, 0U);
  expect_contains(to_text(survey, report),
                  "packet " + std::to_string(finding.packet.number) + ": ");
  expect_contains(to_json(survey, report), "\"results_wrong\": 1");
}

TEST_F(Replay, NamesDataThatIsSentAgainWithOtherValues) {
  CaptureFile file = generate(job(2, 20'000));
  const auto data = std::ranges::find_if(
      file.records, [](const Record& record) { return header_of(record).type == Type::kData; });
  Record again = *data;
  again.bytes[testing::kPayloadAt + sizeof(proto::Header)] ^= std::byte{nat8::kSign};
  const auto place = file.records.insert(data + 1, again) - file.records.begin();
  write(file);
  const TraceSurvey survey(path_.string());
  ASSERT_EQ(survey.findings().count(), 1U);
  EXPECT_EQ(survey.findings().kept()[0].packet.number, static_cast<std::uint64_t>(place) + 1);
  expect_contains(survey.findings().kept()[0].text, "has other values");
}

TEST_F(Replay, NeedsNeitherTheAnswersNorTheUsualPorts) {
  TraceJobOptions options = faulty(job(3, 40'000));
  options.window = 8;
  CaptureFile file = generate(options);
  std::erase_if(file.records, comes_from_aggregator);
  for (Record& record : file.records) {
    record.bytes[testing::kUdpAt] ^= std::byte{0x40};
    record.bytes[testing::kUdpAt + 2] ^= std::byte{0x80};
  }
  write(file);
  expect_good();
  EXPECT_EQ(TraceSurvey(path_.string()).recorded().right, 0U);
}

TEST_F(Replay, CountsRecordedResultsWithoutTheirData) {
  CaptureFile file = generate(job(2, 1000));
  std::erase_if(file.records, [](const Record& record) {
    return header_of(record).type == Type::kData && header_of(record).rank.value() == 1;
  });
  write(file);
  const TraceSurvey survey(path_.string());
  EXPECT_EQ(survey.recorded().unchecked, 2U);
  EXPECT_EQ(survey.recorded().right + survey.recorded().wrong, 0U);
  EXPECT_EQ(survey.complete_chunks(), 0U);
}

TEST_F(Replay, HoldsBackWhatAMergeOfCapturesPutTooEarly) {
  TraceJobOptions options = job(3, 60'000);
  options.window = 8;
  CaptureFile file = generate(options);
  // All that rank 0 says of values comes first, before the results that allowed it.
  const auto first = std::ranges::find_if(
      file.records, [](const Record& record) { return header_of(record).type == Type::kData; });
  std::stable_partition(first, file.records.end(), [](const Record& record) {
    return header_of(record).type == Type::kData && header_of(record).rank.value() == 0;
  });
  write(file);
  EXPECT_GT(expect_good().held, 10U);
}

TEST_F(Replay, SaysThatAnswersAreMissingWhereTheTraceHasAHole) {
  TraceJobOptions options = job(2, 60'000);
  options.window = 8;
  CaptureFile file = generate(options);
  const auto data = std::ranges::find_if(
      file.records, [](const Record& record) { return header_of(record).type == Type::kData; });
  file.records.erase(data);
  write(file);
  const TraceSurvey survey(path_.string());
  const ReplayReport report = replay_into_shards(survey, {}, 1);
  EXPECT_FALSE(report.good(survey));
  EXPECT_EQ(report.answers.wrong, 0U);
  EXPECT_EQ(report.answers.missing, 5U);  // 43 chunks in 8 slots, of which one stays open
  expect_contains(to_text(survey, report), "no RESULT of 5 chunks");
}

TEST_F(Replay, RefusesATraceThatBeginsTooLate) {
  const CaptureFile file = generate(job(3, 5000));
  const auto without_joins = [&](const std::set<int>& ranks) {
    CaptureFile rest = file;
    std::erase_if(rest.records, [&](const Record& record) {
      const proto::Header header = header_of(record);
      return header.type == Type::kJoin && ranks.contains(header.rank.value());
    });
    write(rest);
    return refusal();
  };
  expect_contains(without_joins({1}), " of 3 ranks, and no JOIN of rank 1 is in the trace");
  expect_contains(without_joins({0, 2}), "no JOIN of ranks 0 and 2 is in the trace");
  expect_contains(without_joins({0, 1, 2}), "no JOIN is before it in the trace");
  write({});
  expect_contains(refusal(), "has no natagg packet");
}

TEST_F(Replay, SaysOfAPacketWithADamagedJobThatItsJobDoesNotJoin) {
  TraceJobOptions options = job(2, 5000);
  options.jobs = 2;
  CaptureFile file = generate(options);
  const auto data = std::ranges::find_if(
      file.records, [](const Record& record) { return header_of(record).type == Type::kData; });
  proto::Header header = header_of(*data);
  header.job = proto::Be32{0x0100'0000};
  std::memcpy(&data->bytes[testing::kPayloadAt], &header, sizeof(header));
  write(file);
  const std::string text = refusal();
  expect_contains(text, "packet " + std::to_string(data - file.records.begin() + 1) +
                            " is DATA of job 16777216 epoch ");
  expect_contains(text, "the ranks of no job but 0, 1 join: its job number is damaged, or");
}

TEST_F(Replay, SaysWhichLiveAnswersAreWrong) {
  generate(job(2, 1000));
  const TraceSurvey survey(path_.string());
  ReplayLedger ledger(survey);
  ledger.set_live(0, {.job = 5, .epoch = 9, .first_sequence = 100});
  const auto& first = *survey.sessions()[0].chunks().begin();
  const std::uint32_t sequence = first.first;
  const TraceChunk& chunk = first.second;
  proto::Header header = proto::make_header(Type::kResult);
  header.job = proto::Be32{5};
  header.epoch = proto::Be32{9};
  header.sequence = proto::Be32{sequence - survey.sessions()[0].first_sequence() + 100};
  header.operation = proto::Be32{chunk.terms.operation};
  header.element = proto::Be64{chunk.terms.element};
  header.fingerprint = proto::Be64{chunk.terms.fingerprint};
  header.count = proto::Be16{chunk.terms.count};
  const auto answer = [&](std::uint8_t change, std::uint32_t offset) {
    proto::Header changed = header;
    changed.sequence = proto::Be32{header.sequence.value() + offset};
    testing::Bytes bytes(sizeof(changed) + chunk.expected.size());
    std::memcpy(bytes.data(), &changed, sizeof(changed));
    std::memcpy(bytes.data() + sizeof(changed), chunk.expected.data(), chunk.expected.size());
    bytes[sizeof(changed) + 3] ^= std::byte{change};
    return ledger.take(bytes);
  };
  EXPECT_FALSE(answer(0, 1));
  EXPECT_EQ(ledger.answers().wrong, 1U);  // no such chunk
  EXPECT_TRUE(answer(nat8::kSign, 0)->first);
  EXPECT_EQ(ledger.answers().wrong, 2U);
  EXPECT_EQ(ledger.answers().right, 0U);
  EXPECT_FALSE(answer(0, 0)->first);
  EXPECT_EQ(ledger.answers().wrong, 2U);
  expect_contains(ledger.findings().kept()[1].text, "the live RESULT");
  EXPECT_EQ(ledger.findings().kept()[1].packet, chunk.first_packet);
}

// --- Over sockets ---

UdpTarget target_of(const testing::LoopbackAggregator& aggregator) {
  const std::string address = aggregator.address();
  const auto port = std::stoul(address.substr(address.find(':') + 1));
  return {.aggregator = {0x7F00'0001, static_cast<std::uint16_t>(port)}, .first_job = 100};
}

TEST_F(Replay, OverSocketsHasNothingWrong) {
  TraceJobOptions options = faulty(job(3, 60'000, 2));
  options.shards = 2;
  options.jobs = 2;
  generate(options);
  const TraceSurvey survey(path_.string());
  const testing::LoopbackAggregator aggregator(2);
  const ReplayReport report = replay_over_udp(survey, target_of(aggregator), {}, 2);
  EXPECT_TRUE(report.good(survey)) << to_text(survey, report);
  EXPECT_EQ(report.answers.right, 2 * survey.complete_chunks());
  EXPECT_GE(aggregator.received(Type::kData), 2 * 3 * survey.complete_chunks());
  EXPECT_EQ(report.latency.count(), report.answers.right);
}

TEST_F(Replay, OverSocketsKeepsTheTraceTimeOrTheGivenRate) {
  TraceJobOptions options = job(2, 60'000);
  options.network.gigabits = 0.01;  // 60 kB a rank take 50 ms
  generate(options);
  const TraceSurvey survey(path_.string());
  const testing::LoopbackAggregator aggregator;
  const ReplayReport recorded =
      replay_over_udp(survey, target_of(aggregator), {.recorded = true}, 1);
  EXPECT_TRUE(recorded.good(survey)) << to_text(survey, recorded);
  EXPECT_GE(recorded.seconds, 0.04);
  const ReplayReport paced = replay_into_shards(survey, {.rate = 1000}, 1);
  EXPECT_GE(paced.seconds, static_cast<double>(paced.packets - 1) / 1000);
}

TEST_F(Replay, OverSocketsSaysWhyAnAggregatorCannotTakeIt) {
  generate(job(2, 10'000));
  const TraceSurvey survey(path_.string());
  aggregator::ShardConfig config;
  config.max_window = 64;
  const testing::LoopbackAggregator small(1, config);
  const auto refusal_of = [&](const testing::LoopbackAggregator& aggregator) -> std::string {
    try {
      static_cast<void>(replay_over_udp(survey, target_of(aggregator), {}, 1));
    } catch (const TraceError& error) {
      return error.what();
    }
    return "nothing is refused";
  };
  expect_contains(refusal_of(small), "a window of 64, the trace has 1408 and 256");
  config = {};
  config.max_workers = 1;
  const testing::LoopbackAggregator few(1, config);
  expect_contains(refusal_of(few), "cannot be formed");
}

}  // namespace
}  // namespace natagg::tools
