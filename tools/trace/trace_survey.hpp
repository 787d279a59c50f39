// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The first reading of a trace: its sessions and what they imply, and whether it can be replayed.
// Takes memory for one result of each chunk, which is an n-th of what n ranks sent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tools/trace/trace_merge.hpp"
#include "tools/trace/trace_session.hpp"

namespace natagg::tools {

class TraceSurvey {
 public:
  /// Reads the whole trace. Throws TraceError where it cannot be replayed.
  explicit TraceSurvey(std::vector<std::string> paths);
  explicit TraceSurvey(const std::string& path) : TraceSurvey(std::vector{path}) {}
  /// Likewise, from a reader that has read nothing yet.
  explicit TraceSurvey(TraceReader& reader);

  /// The files, to be read again, and what to call them in errors.
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<TraceSession>& sessions() const { return sessions_; }
  /// Index of the session that a packet to or from `shard` belongs to.
  [[nodiscard]] std::optional<std::size_t> session_of(const proto::Endpoint& shard,
                                                      const proto::Header& header) const;
  /// The aggregators' shards, in the order of their first packets, and the place in it of one.
  [[nodiscard]] const std::vector<proto::Endpoint>& shards() const { return shards_; }
  [[nodiscard]] std::size_t shard_index(const proto::Endpoint& shard) const;

  [[nodiscard]] std::uint64_t packets() const { return packets_; }
  [[nodiscard]] std::uint64_t foreign() const { return foreign_; }
  [[nodiscard]] std::int64_t first_time() const { return first_time_; }
  [[nodiscard]] std::int64_t duration() const { return last_time_ - first_time_; }
  [[nodiscard]] const Findings& findings() const { return findings_; }
  [[nodiscard]] RecordedResults recorded() const;
  [[nodiscard]] std::uint64_t complete_chunks() const;

 private:
  using SessionKey = std::tuple<proto::Endpoint, std::uint32_t, std::uint32_t>;  // job, epoch
  using PlaceKey = std::tuple<proto::Endpoint, std::uint32_t, std::uint16_t>;    // job, place

  void read(auto& trace);
  void take(const TracePacket& packet);
  void on_join(const TracePacket& packet, const proto::Header& header);
  void on_welcome(const TracePacket& packet, const proto::Header& header);
  void on_values(const TracePacket& packet, const proto::Header& header);
  [[nodiscard]] std::string why_unknown(const proto::Endpoint& shard, std::uint32_t job) const;
  [[nodiscard]] TraceSession& session(const TracePacket& packet, const proto::Header& header,
                                      const proto::Endpoint& shard,
                                      std::optional<std::uint16_t> place);

  std::vector<std::string> paths_;
  std::string name_;
  std::vector<TraceSession> sessions_;
  std::map<SessionKey, std::size_t> by_epoch_;
  std::map<PlaceKey, TraceSession::Joins> joins_;      // the latest of each rank
  std::map<PlaceKey, std::vector<std::size_t>> open_;  // sessions that lack a JOIN
  std::vector<proto::Endpoint> shards_;
  std::uint64_t packets_ = 0;
  std::uint64_t foreign_ = 0;
  std::int64_t first_time_ = 0;
  std::int64_t last_time_ = 0;
  Findings findings_;
};

}  // namespace natagg::tools
