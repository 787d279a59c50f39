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
#include "aggregator/core/outbox.hpp"
#include "aggregator/core/session.hpp"
#include "aggregator/core/shard_config.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

/// A job's place of the pool that is here: at most one session that runs and one that is to follow
/// it. A job has a second one here when this shard stands in for another, whose place moved.
struct Job {
  std::uint32_t id = 0;
  std::uint16_t place = 0;
  std::optional<Session> running;
  std::optional<Session> forming;
};

/// A header for the sender of `request`, about the same job.
[[nodiscard]] proto::Header answer(const proto::Header& request, proto::Type type);

/// A header for all members of a session.
[[nodiscard]] proto::Header session_header(const Job& job, const Session& session,
                                           proto::Type type);

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

  /// Tells a worker that speaks another version or codec, or has a key where there are none, which
  /// it could not find out otherwise.
  /// Magic, version, type and the instance's place are the same in every version.
  void refuse_foreign(std::span<const std::byte> datagram, const Peer& source,
                      proto::Reject reject);

  /// Tells the sender of a HELLO or JOIN what the guard found.
  void refuse_key(const proto::Header& header, std::span<const std::byte> datagram,
                  const Peer& source, proto::RefuseReason reason);
  void challenge(const proto::Header& header, std::span<const std::byte> datagram,
                 const Peer& source);

  /// The keys of a session of job `id`, forming or running; null when there is no such session or
  /// key.
  [[nodiscard]] SessionGuard* find_guard(std::uint32_t id, std::uint32_t epoch);

  /// Ends a session and tells its members.
  void abort(const Job& job, Session& session, const proto::AbortBody& body);
  void send_abort(const proto::Header& request, const Peer& source, const proto::AbortBody& body);

  void tick(Time now);

  [[nodiscard]] std::span<const Job> jobs() const { return jobs_; }
  [[nodiscard]] std::span<Job> jobs() { return jobs_; }

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
  };
  bool meet_running(const Join& join, Job& job);  // false when it is not for the running session
  [[nodiscard]] Job* open_job(const Join& join);  // null when that was refused
  void meet_forming(const Join& join, Job& job);
  void refuse(const Join& join, const Refusal& refusal);

  void welcome(const Job& job, const Session& session, proto::SessionState state,
               const Peer& source, std::uint64_t instance, std::size_t length);
  void send_probe(const Job& job, Session& session, Time now);
  void refuse(const proto::Header& request, const Peer& source, std::uint64_t instance,
              const Refusal& refusal, proto::Be16 place = proto::Be16{});
  [[nodiscard]] bool form(Job& job, const Terms& terms);
  bool make_ready(Job& job);  // false when it is not as claimed, or there is no memory for it
  void refuse_all(const Job& job, const Session& session, std::span<const Peer> to,
                  proto::RefuseReason reason);
  [[nodiscard]] const Session* sister(const Job& job) const;
  void call_members(const Job& job, Session& session, Time now);
  void forgive_pause(Time now);
  void tick_forming(Job& job, Time now);
  void tick_running(Job& job, Time now);
  [[nodiscard]] std::uint32_t take_epoch();
  [[nodiscard]] proto::Endpoint group_of(std::uint32_t job, const Terms& terms) const;
  [[nodiscard]] Job* find_job(std::uint32_t id, std::uint16_t place);
  [[nodiscard]] std::optional<Refusal> compare_pool(std::uint32_t id, const Terms& terms, Time now);

  const ShardConfig& config_;
  const Kernels& kernels_;
  Guard& guard_;
  Counters& counters_;
  Outbox& outbox_;
  std::vector<Job> jobs_;
  std::vector<Peer> refused_;      // likewise
  std::optional<Session> failed_;  // kept until its refusal is sent
  std::uint32_t next_epoch_;
  std::optional<Time> last_tick_;
};

}  // namespace natagg::aggregator
