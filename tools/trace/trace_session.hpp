// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One session of a trace, a job's on one shard, and what its packets imply: the terms it was formed
// on, who takes part, and the result of each chunk to which all contributed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "aggregator/core/slot.hpp"
#include "proto/endpoint.hpp"
#include "proto/packet.hpp"
#include "tools/trace/expected_sum.hpp"
#include "tools/trace/trace_reader.hpp"

namespace natagg::tools {

/// Something about a packet of the trace, or about an answer to it, that is not as it should be.
struct Finding {
  PacketPlace packet;  // of the trace, if of any
  std::string text;
};

class Findings {
 public:
  static constexpr std::size_t kKept = 20;

  void add(const PacketPlace& packet, std::string text) {
    if (kept_.size() < kKept) kept_.push_back({packet, std::move(text)});
    ++count_;
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The first of them.
  [[nodiscard]] const std::vector<Finding>& kept() const { return kept_; }

 private:
  std::vector<Finding> kept_;
  std::uint64_t count_ = 0;
};

/// How recorded RESULTs compare with the recomputed ones.
struct RecordedResults {
  std::uint64_t right = 0;
  std::uint64_t wrong = 0;
  std::uint64_t unchecked = 0;  // the trace lacks a rank's DATA
};

/// A chunk, from its first acceptable DATA on.
struct TraceChunk {
  aggregator::Chunk terms;
  PacketPlace first_packet;
  std::vector<std::uint64_t> contributions;  // by rank: hash of the bytes, 0 for none
  std::uint16_t ranks = 0;                   // that contributed
  std::optional<ExpectedSum> sum;            // while some are missing
  std::vector<std::uint8_t> expected;        // once none is
  bool specials = false;
  std::map<PacketPlace, std::vector<std::uint8_t>> early;  // RESULTs before the last DATA

  [[nodiscard]] bool complete() const { return !expected.empty(); }
};

class TraceSession {
 public:
  struct Join {
    proto::Endpoint from;
    std::vector<std::byte> datagram;
    [[nodiscard]] proto::JoinBody body() const {
      return proto::read_body<proto::JoinBody>(datagram);
    }
  };

  /// By rank; those missing so far are empty.
  using Joins = std::vector<Join>;

  /// The session that `packet`, its first in the trace, belongs to. `joins` has at least one.
  TraceSession(std::uint32_t job, std::uint32_t epoch, const proto::Endpoint& shard, Joins joins,
               const PacketPlace& packet);

  /// What a shard was told or told its members. Each is valid and of this session.
  void on_join(std::uint16_t rank, const Join& join);
  void on_welcome(const proto::WelcomeBody& body);
  void on_data(const TracePacket& packet, Findings& findings);
  void on_result(const TracePacket& packet, Findings& findings);
  void on_abort() { aborted_ = true; }

  /// Once all packets are known: drops what no more can come of, and throws TraceError where a rank
  /// never joined.
  void finish(const std::string& trace);

  [[nodiscard]] std::uint32_t job() const { return job_; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
  [[nodiscard]] const proto::Endpoint& shard() const { return shard_; }
  [[nodiscard]] std::uint16_t world() const { return static_cast<std::uint16_t>(joins_.size()); }
  [[nodiscard]] const Joins& joins() const { return joins_; }
  [[nodiscard]] std::uint16_t values() const { return values_; }
  [[nodiscard]] std::uint16_t window() const { return window_; }
  [[nodiscard]] std::uint32_t first_sequence() const { return first_sequence_; }
  [[nodiscard]] bool aborted() const { return aborted_; }
  /// Its partial reductions do not wait for all ranks.
  [[nodiscard]] bool drops_stragglers() const;
  [[nodiscard]] const std::unordered_map<std::uint32_t, TraceChunk>& chunks() const {
    return chunks_;
  }
  [[nodiscard]] const TraceChunk* chunk(std::uint32_t sequence) const;
  [[nodiscard]] std::uint64_t complete_chunks() const { return complete_; }
  [[nodiscard]] const RecordedResults& recorded() const { return recorded_; }

  /// "job 7 epoch 3 at 10.0.0.1:4790".
  [[nodiscard]] std::string describe() const;

 private:
  /// Whether a shard takes it: from its member, on the agreed terms.
  [[nodiscard]] bool acceptable(const TracePacket& packet, const proto::Header& header);
  void complete(TraceChunk& chunk, std::uint32_t sequence, Findings& findings);
  void compare(const TraceChunk& chunk, std::uint32_t sequence, const PacketPlace& packet,
               std::span<const std::uint8_t> bytes, Findings& findings);

  std::uint32_t job_;
  std::uint32_t epoch_;
  proto::Endpoint shard_;
  Joins joins_;
  PacketPlace first_packet_;
  bool welcomed_ = false;  // what follows is what WELCOME says, else what DATA and JOIN imply
  std::uint16_t values_ = 0;
  std::uint16_t window_ = 0;
  std::optional<std::uint32_t> least_sequence_;
  std::uint32_t first_sequence_ = 0;
  bool aborted_ = false;
  std::unordered_map<std::uint32_t, TraceChunk> chunks_;  // by sequence
  std::uint64_t complete_ = 0;
  RecordedResults recorded_;
};

/// Where two payloads differ first, in words: "value 3 is 0x3c, not 0x3d". Either may be longer.
[[nodiscard]] std::string first_difference(std::span<const std::uint8_t> bytes,
                                           std::span<const std::uint8_t> expected);

}  // namespace natagg::tools
