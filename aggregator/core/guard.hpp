// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Stands between a shard and the network where jobs have keys: lets no packet in that its job's
// key does not vouch for, and seals what goes out. Keeps nothing about senders that have not
// proved the key: a challenge is a function of the question and can be checked without having been
// remembered.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "aggregator/core/counters.hpp"
#include "aggregator/core/outbox.hpp"
#include "aggregator/core/session_guard.hpp"
#include "aggregator/core/shard_config.hpp"
#include "proto/authentication.hpp"

namespace natagg::aggregator {

class Guard {
 public:
  /// What the guard finds out about a packet.
  enum class Verdict : std::uint8_t {
    kAdmitted,
    kDropped,       // and counted
    kRefused,       // likewise, and HELLO or JOIN must be told why: refusal()
    kUnchallenged,  // a good JOIN, which must prove that it is new: challenge()
    kUnknown        // of no session, and counted; its sender may be told so
  };

  /// `counters` outlives the guard.
  Guard(const ShardConfig& config, Counters& counters);

  /// False: no job has a key, and nothing else may be called.
  [[nodiscard]] bool enabled() const { return keys_ != nullptr; }

  /// Judges a valid packet; `session` is the one of its job and epoch, null for none. Never throws.
  [[nodiscard]] Verdict judge(const proto::Header& header, std::span<const std::byte> datagram,
                              const Peer& source, SessionGuard* session, Time now);

  /// Why the latest packet was refused.
  [[nodiscard]] proto::RefuseReason refusal() const { return refusal_; }

  /// The keys of a new session of `job`; null when the job has none. Throws when there is no
  /// memory for them.
  [[nodiscard]] std::unique_ptr<SessionGuard> make_session(std::uint32_t job, std::uint32_t epoch,
                                                           std::uint16_t world);

  /// Puts proof and trailer to each datagram of a job that has a key. `find(job, epoch)` gives the
  /// session's keys. One that cannot be sealed is not sent. Never throws.
  template <typename Find>
  void seal(Outbox& outbox, Find&& find) {
    for (std::size_t i = 0; i < outbox.contents().size(); ++i) {
      const proto::Header header = proto::read_header(outbox.contents()[i].head);
      seal(outbox, i, header, find(header.job.value(), header.epoch.value()));
    }
  }

 private:
  [[nodiscard]] const proto::JobKey* find_key(std::uint32_t job) const;
  [[nodiscard]] Verdict refuse(proto::RefuseReason reason, Counter counter);
  [[nodiscard]] Verdict judge_handshake(const proto::JobKey& key, const proto::Header& header,
                                        std::span<const std::byte> datagram, const Peer& source,
                                        Time now);
  [[nodiscard]] Verdict judge_session(const proto::Header& header,
                                      std::span<const std::byte> datagram, SessionGuard* session,
                                      Time now);
  [[nodiscard]] proto::Nonce challenge(const proto::Header& request, const Peer& source,
                                       Time period) const;
  void seal(Outbox& outbox, std::size_t i, const proto::Header& header, SessionGuard* session);

  std::shared_ptr<const proto::JobKeys> keys_;
  bool others_;  // may join without a key
  Counters& counters_;
  proto::Hmac hmac_;
  proto::Secret challenges_;  // keys the challenges ...
  proto::Secret sessions_;    // ... and the nonces of sessions
  std::uint64_t made_sessions_ = 0;
  Time next_unknown_ = 0;  // when the next packet of no session may be answered
  proto::RefuseReason refusal_{};
  proto::Nonce asker_{};    // what the answer's proof repeats, the latest one's worker or MAC, ...
  proto::Be32 question_{};  // ... its counter, which the answer repeats, and ...
  proto::Nonce challenge_{};  // ... what the worker must answer
};

}  // namespace natagg::aggregator
