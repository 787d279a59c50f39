// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The ranks' sockets of a replay, and how live sessions are found, formed and left over them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/trace/udp_replay.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::tools {

class UdpRanks {
 public:
  using OnDatagram = std::function<void(std::span<const std::byte>)>;

  /// Asks the aggregator for its shards, and throws TraceError when it does not answer or cannot
  /// take the trace.
  UdpRanks(const TraceSurvey& survey, const UdpTarget& target);

  /// Forms a session as `job`; returns when every rank is in it. What arrives for other sessions
  /// goes to `others`. Throws TraceError when it is refused or does not become ready.
  void form(std::size_t session, std::uint32_t job, ReplayLedger& ledger, const OnDatagram& others);

  void send(std::size_t session, std::uint16_t rank, std::span<const std::byte> datagram);

  /// Hands over what has arrived; waits for it up to so long, in whole milliseconds.
  void receive(std::int64_t nanoseconds, const OnDatagram& on_datagram);

  /// Keeps silent ranks alive.
  void heartbeat(const ReplayLedger& ledger);

  /// All ranks leave all sessions, and their sockets are closed.
  void leave(const ReplayLedger& ledger);

 private:
  [[nodiscard]] worker::FileDescriptor open(const proto::Endpoint& to) const;
  void ask_for_shards();
  [[nodiscard]] proto::Endpoint live_shard(const TraceSession& session) const;

  const TraceSurvey& survey_;
  UdpTarget target_;
  worker::FileDescriptor poll_;
  std::uint16_t shards_ = 1;  // of the live aggregator
  std::uint64_t next_instance_;
  std::int64_t last_heartbeat_ = 0;
  std::vector<std::vector<worker::FileDescriptor>> sockets_;  // by session and rank
  std::vector<std::byte> buffer_;
};

}  // namespace natagg::tools
