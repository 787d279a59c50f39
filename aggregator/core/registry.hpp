// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Who is in which job: discovery, joining, leaving and liveness, for one shard.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/core/counters.hpp"
#include "aggregator/core/guard.hpp"
#include "aggregator/core/job_table.hpp"
#include "aggregator/core/outbox.hpp"
#include "aggregator/core/refusing.hpp"
#include "aggregator/core/shard_config.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

class Registry {
 public:
  /// `guard`, `counters` and `outbox` are the shard's and outlive the registry.
  Registry(const ShardConfig& config, const Kernels& kernels, Guard& guard, Counters& counters,
           Outbox& outbox);

  struct Found {
    Job* job = nullptr;
    Session* session = nullptr;
    Member* member = nullptr;
  };

  /// The running session's member that sent this packet. All null, and the packet counted and if
  /// need be answered, when there is none.
  Found find_member(const proto::Header& header, const Peer& source, Time now);

  void on_hello(const proto::Header& header, std::span<const std::byte> datagram,
                const Peer& source);
  void on_join(const proto::Header& header, std::span<const std::byte> datagram, const Peer& source,
               Time now);
  void on_heartbeat(const proto::Header& header, const Peer& source, Time now);
  void on_leave(const proto::Header& header, std::span<const std::byte> datagram,
                const Peer& source);

  /// Asks the sender of a JOIN to prove that it is new.
  void challenge(const proto::Header& header, std::span<const std::byte> datagram,
                 const Peer& source);

  /// The keys of a session of job `id`, forming or running; null when there is no such session or
  /// key.
  [[nodiscard]] SessionGuard* find_guard(std::uint32_t id, std::uint32_t epoch);

  /// Ends a session and tells its members.
  void abort(const Job& job, Session& session, const proto::AbortBody& body);
  void send_abort(const proto::Header& request, const Peer& source, const proto::AbortBody& body);

  void tick(Time now);

  [[nodiscard]] std::span<const Job> jobs() const { return jobs_.all(); }
  [[nodiscard]] std::span<Job> jobs() { return jobs_.all(); }
  [[nodiscard]] Refusing& refusing() { return refusing_; }

 private:
  /// A JOIN and what it says.
  struct Join {
    const proto::Header& header;
    const Peer& source;
    Time now;
    std::size_t length;  // of its datagram
    std::uint16_t rank;
    std::uint64_t instance;
    Terms terms;
    Claim claim;
    Joiner joiner;
    bool waited;  // it has been told before that there is no room
  };
  bool meet_running(const Join& join, Job& job);  // false when it is not for the running session
  [[nodiscard]] Job* open_job(const Join& join);  // null when that was refused
  [[nodiscard]] bool keeps_room_from(const Join& join) const;
  void meet_forming(const Join& join, Job& job);
  void refuse(const Join& join, const Refusal& refusal);

  void welcome(const Job& job, const Session& session, proto::SessionState state,
               const Peer& source, std::uint64_t instance, std::size_t length);
  void send_probe(const Job& job, Session& session, Time now);
  [[nodiscard]] bool form(Job& job, const Terms& terms);
  bool make_ready(Job& job);  // false when it is not as claimed, or there is no memory for it
  void call_members(const Job& job, Session& session, Time now);
  void forgive_pause(Time now);
  void tick_forming(Job& job, Time now);
  void tick_running(Job& job, Time now);
  [[nodiscard]] std::uint32_t take_epoch();
  [[nodiscard]] proto::Endpoint group_of(std::uint32_t job, const Terms& terms) const;

  const ShardConfig& config_;
  const Kernels& kernels_;
  Guard& guard_;
  Counters& counters_;
  Outbox& outbox_;
  Refusing refusing_;
  JobTable jobs_;
  std::vector<Peer> refused_;      // kept until their refusal is sent
  std::optional<Session> failed_;  // likewise
  std::uint32_t next_epoch_;
  std::optional<Time> first_tick_;
  std::optional<Time> last_tick_;
};

}  // namespace natagg::aggregator
