// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Joins a place of the pool: repeats JOIN until the shard says that every rank is there. When the
// shard is lost, joins again, there or at another shard that stands in for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker_lib/core/channel.hpp"
#include "worker_lib/core/sink.hpp"

namespace natagg::worker {

class Joining {
 public:
  /// What the pool as a whole allows; the shard may lower it.
  struct Proposal {
    std::uint16_t values = 0;
    std::uint16_t window = 0;
    std::uint16_t index = 0;   // of the shard in the pool ...
    std::uint16_t shards = 0;  // ... of so many
  };

  /// `config` outlives this.
  Joining(const StreamConfig& config, const proto::Endpoint& shard, const Proposal& proposal,
          Time now);

  /// The session that is to be resumed.
  struct Lost {
    std::uint64_t members = 0;  // its digest
    std::uint32_t resume = 0;   // sequence of the first chunk without a result
    std::uint32_t held = 0;     // chunks from there to the last with a result
    bool untouched = true;      // no result has come at all
    std::uint16_t values = 0;   // 0: none was agreed
    std::uint16_t window = 0;
  };

  /// Starts over at `shard`, after `moves` moves of this place.
  void join_again(const proto::Endpoint& shard, const Lost& lost, std::uint16_t moves, Time now);

  void transmit(Time now, Sink& sink);
  [[nodiscard]] Time next_event() const { return next_join_; }

  /// A WELCOME; anything but this worker's own is ignored. Returns in words why the session is not
  /// the one to be resumed.
  [[nodiscard]] std::optional<std::string> on_welcome(const proto::Header& header,
                                                      const proto::WelcomeBody& body, Time now);

  /// A multicast PROBE of this session: the next JOIN says that it was heard.
  void on_probe(const proto::Header& header, Time now);

  /// A CHALLENGE, which the next JOIN answers.
  void on_challenge(Time now) {
    if (!ready_) next_join_ = now;
  }

  /// A REFUSE. Returns the reason in words when waiting cannot help.
  [[nodiscard]] std::optional<std::string> on_refuse(const proto::RefuseBody& body);

  /// This process was not running for `gap`.
  void forgive(Time gap);

  /// Whether packets about this place's joining come from `shard`.
  [[nodiscard]] bool is(const proto::Endpoint& shard, std::uint16_t place) const {
    return session_.endpoint == shard && session_.index == place;
  }
  [[nodiscard]] const proto::Endpoint& shard() const { return session_.endpoint; }
  [[nodiscard]] std::uint16_t moves() const { return moves_; }
  /// The shard has taken this rank in, and not said since that it has no room.
  [[nodiscard]] bool admitted() const { return admitted_; }
  /// A session is to be resumed here.
  [[nodiscard]] bool resumes() const { return lost_.has_value(); }
  /// When the shard was last heard, or first asked if it never was; kNever before.
  [[nodiscard]] Time silent_since() const { return silent_since_; }
  /// When the shard first answered of the session that it forms; kNever before.
  [[nodiscard]] Time welcome_since() const { return welcome_since_; }
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::uint64_t members() const { return members_; }
  [[nodiscard]] const ShardSession& session() const { return session_; }
  [[nodiscard]] std::optional<proto::Endpoint> group() const;

  /// What it still waits for.
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] int missing_rank() const { return missing_; }

 private:
  void set_flag(proto::JoinFlag flag, bool value);

  const StreamConfig& config_;
  ShardSession session_;
  std::uint16_t window_;  // proposed
  std::vector<std::byte> datagram_;
  std::optional<Lost> lost_;
  std::uint16_t moves_ = 0;
  proto::WelcomeBody welcome_{};
  std::uint64_t members_ = 0;
  std::string refusal_;
  int missing_ = -1;
  bool admitted_ = false;
  bool ready_ = false;
  Time next_join_;
  Time silent_since_ = kNever;
  Time welcome_since_ = kNever;
};

}  // namespace natagg::worker
