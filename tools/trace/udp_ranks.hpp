// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The ranks of a replay, and how they find, form and leave live sessions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tools/trace/rank_network.hpp"
#include "tools/trace/udp_replay.hpp"

namespace natagg::tools {

class UdpRanks {
 public:
  using OnDatagram = RankNetwork::OnDatagram;

  /// Asks the aggregator for its shards, and throws TraceError when it does not answer or cannot
  /// take the trace. No way of `network` is open.
  UdpRanks(const TraceSurvey& survey, const UdpTarget& target, RankNetwork& network);

  /// Forms a session as `job`; returns when every rank is in it. What arrives for other sessions
  /// goes to `others`. Throws TraceError when it is refused or does not become ready.
  void form(std::size_t session, std::uint32_t job, ReplayLedger& ledger, const OnDatagram& others);

  void send(std::size_t session, std::uint16_t rank, std::span<const std::byte> datagram);

  /// Hands over what has arrived; waits for it up to so long, in whole milliseconds.
  void receive(std::int64_t nanoseconds, const OnDatagram& on_datagram) {
    network_.receive(nanoseconds, on_datagram);
  }

  /// Keeps silent ranks alive.
  void heartbeat(const ReplayLedger& ledger);

  /// All ranks leave all sessions, and their ways are closed.
  void leave(const ReplayLedger& ledger);

 private:
  void ask_for_shards();
  [[nodiscard]] proto::Endpoint live_shard(const TraceSession& session) const;

  const TraceSurvey& survey_;
  UdpTarget target_;
  RankNetwork& network_;
  std::uint16_t shards_ = 1;  // of the live aggregator
  std::uint64_t next_instance_;
  std::int64_t last_heartbeat_ = 0;
  std::vector<std::vector<std::size_t>> ways_;  // by session and rank
};

}  // namespace natagg::tools
