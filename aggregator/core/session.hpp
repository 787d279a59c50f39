// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A session is one epoch of one job on one shard: its terms, its members and, once every rank has
// joined, its slots. It is forming until then; afterwards it is whole until a member leaves or
// falls silent. Only a session that is no longer whole can be replaced by a new one, so nobody can
// push out a job that is running.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/core/backlog.hpp"
#include "aggregator/core/claim.hpp"
#include "aggregator/core/loss_watch.hpp"
#include "aggregator/core/peer.hpp"
#include "aggregator/core/session_guard.hpp"
#include "aggregator/core/slot.hpp"
#include "aggregator/core/straggler_watch.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

/// What every JOIN of a session must agree on, or lower: values and window.
struct Terms {
  std::uint64_t seed = 0;
  std::uint16_t world = 0;
  std::uint16_t shard = 0;
  std::uint16_t shards = 0;
  std::uint16_t values = 0;
  std::uint16_t window = 0;
  std::uint8_t rounding = 0;
  std::int8_t shift = 0;
  bool values_pinned = false;
  std::uint16_t stragglers = 0;  // ms that a chunk may wait for ranks; 0: no partial results
  std::uint16_t quorum = 0;      // ranks that a partial result has at least
};

struct Refusal {
  proto::RefuseReason reason;
  std::uint64_t yours = 0;
  std::uint64_t ours = 0;
};

struct Member {
  Peer peer;
  Claim claim;
  std::uint64_t instance = 0;
  Time last_heard = 0;
  bool joined = false;
  bool gone = false;  // left, fell silent or was left behind
  proto::AbortReason why_gone{};
  bool hears_multicast = false;
  std::uint32_t misses = 0;  // of results by multicast, weighed: see Session::missed_result()
  bool takes_part = false;   // has sent something in the ready session, and so knows that it is
};

/// An abort that `rank` is the cause of.
[[nodiscard]] proto::AbortBody abort_body(proto::AbortReason reason, std::uint16_t rank);

class Session {
 public:
  /// `guard` is null where the job has no key.
  Session(std::uint32_t epoch, const Terms& terms, const proto::Endpoint& group,
          std::unique_ptr<SessionGuard> guard);

  // --- Forming ---

  /// Takes a JOIN: gives `rank` to `instance`, or refreshes it, and lowers the terms that are
  /// negotiable. Refused, and nothing changed, when the terms differ, when the claim does not fit
  /// the others', or while another instance that was heard within `timeout` has the rank.
  [[nodiscard]] std::optional<Refusal> join(std::uint16_t rank, std::uint64_t instance,
                                            const Terms& terms, const Claim& claim,
                                            const Peer& peer, bool hears_multicast, Time now,
                                            Time timeout);

  /// How `terms` differ from this session's, beyond what is negotiable.
  [[nodiscard]] std::optional<Refusal> compare(const Terms& terms) const;

  /// What to answer a JOIN whose terms differ as `difference` says: that they do only when a rank
  /// has been heard since somebody first asked for others. Those of an earlier job that ended while
  /// it formed may still be here; until they are evicted it is "job running", which passes.
  [[nodiscard]] Refusal contest(const Refusal& difference, Time now);

  /// Frees the ranks of those not heard within `timeout`.
  void evict_silent(Time now, Time timeout);

  /// Frees the rank of a member that gave up joining.
  void withdraw(Member& member);

  /// Frees the ranks of those who came to resume a session, and appends them to `expelled`.
  void expel_claimants(std::vector<Peer>& expelled);

  [[nodiscard]] bool full() const { return joined_ == terms_.world; }
  [[nodiscard]] Time full_since() const { return full_since_; }
  [[nodiscard]] bool multicast_settled() const;

  /// When multicast was last probed.
  [[nodiscard]] Time probed() const { return probed_; }
  void set_probed(Time now) { probed_ = now; }

  /// When the members of another session were last asked to come to this one.
  [[nodiscard]] Time called() const { return called_; }
  void set_called(Time now) { called_ = now; }

  /// False when it is full of other ranks than those whose session it is to resume.
  [[nodiscard]] bool as_claimed() const { return claimed() == 0 || claimed() == members_digest(); }

  /// Makes a full session ready: a new one at `first_sequence`, a resumed one at the first chunk
  /// that a rank lacks. Throws std::bad_alloc.
  void make_ready(std::uint32_t first_sequence, const Kernels& kernels);

  /// Brings everybody() up to date, for a session that ends while it is forming.
  void list_peers();

  // --- Ready ---

  /// The member that sent a packet with this rank from this source, or nullptr.
  [[nodiscard]] Member* member(std::uint16_t rank, const Peer& source);

  /// A packet from `member` arrived, perhaps over another link than before.
  void heard(Member& member, const Peer& source, Time now);

  /// Every rank that is not gone knows that the session is ready.
  [[nodiscard]] bool all_take_part() const;

  /// `rank`, which is not gone yet, is gone from now on.
  void depart(std::uint16_t rank, const proto::AbortBody& cause);

  /// `rank` has asked for a result that it was sent, or has got so far as to contribute. True when
  /// it asks for most of what goes to the group: multicast no longer reaches it, each chunk costs
  /// it a time-out, and from now on it is one of deaf().
  [[nodiscard]] bool missed_result(std::uint16_t rank);
  void contributed(std::uint16_t rank);

  struct Silent {
    std::size_t count = 0;
    std::optional<std::uint16_t> awaited;  // the first that an open chunk waits for
  };

  /// Those not heard within `timeout` are gone from now on. Nobody need be the worse for it: a rank
  /// that has contributed to all that is open may have left, and its LEAVE been lost.
  Silent depart_silent(Time now, Time timeout);

  /// Ends the session for good; the first cause is kept.
  void abort(const proto::AbortBody& body);

  [[nodiscard]] const std::optional<proto::AbortBody>& aborted() const { return aborted_; }
  /// The first that is gone, as the cause of an abort.
  [[nodiscard]] const std::optional<proto::AbortBody>& departed() const { return departed_; }
  [[nodiscard]] bool whole() const { return !aborted_ && !departed_; }
  [[nodiscard]] bool deserted() const { return joined_ == 0; }

  // --- Either ---

  /// This process was not running for `gap`, which is not the members' silence.
  void forgive(Time gap, Time now);

  [[nodiscard]] const Terms& terms() const { return terms_; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
  [[nodiscard]] std::uint32_t first_sequence() const { return first_sequence_; }
  [[nodiscard]] const proto::Endpoint& group() const { return group_; }
  [[nodiscard]] const Member& member(std::uint16_t rank) const { return members_[rank]; }
  [[nodiscard]] std::uint16_t joined() const { return joined_; }
  [[nodiscard]] std::uint16_t missing() const;  // lowest rank not here, kAggregatorRank for none
  [[nodiscard]] std::uint64_t members_digest() const;
  /// Digest of the ranks whose session is resumed here; 0: a new job's.
  [[nodiscard]] std::uint64_t claimed() const;
  /// Of the largest datagram.
  [[nodiscard]] std::size_t datagram_size() const;
  /// The most moves of this place of the pool that a rank joined with.
  [[nodiscard]] std::uint16_t moves() const { return moves_; }

  /// Everybody who is here, by unicast.
  [[nodiscard]] std::span<const Peer> everybody() const { return everybody_; }
  /// Where a result goes: to the group once for all who hear it (empty when none does), ...
  [[nodiscard]] std::span<const Peer> hearing_group() const { return hearing_group_; }
  /// ... and to each of the others by unicast.
  [[nodiscard]] std::span<const Peer> deaf() const { return deaf_; }

  [[nodiscard]] SessionGuard* guard() const { return guard_.get(); }
  [[nodiscard]] SlotTable& slots() { return *slots_; }
  [[nodiscard]] LossWatch& losses() { return *losses_; }
  /// Null where results are never partial, as is the next.
  [[nodiscard]] StragglerWatch* watch() { return watch_ ? &*watch_ : nullptr; }
  [[nodiscard]] Backlog* backlog() { return backlog_ ? &*backlog_ : nullptr; }
  /// Whether a chunk of an operation with this fingerprint need not wait for all ranks.
  [[nodiscard]] bool may_be_partial(std::uint32_t sequence, std::uint64_t fingerprint) const;
  /// Likewise, for those that are gone.
  [[nodiscard]] bool goes_on(std::uint32_t sequence, std::uint64_t fingerprint) const {
    return may_be_partial(sequence, fingerprint) && joined_ >= terms_.quorum;
  }
  /// A chunk is open that cannot be finished without `rank`, which is gone.
  [[nodiscard]] bool lacks(std::uint16_t rank) const;
  /// Some rank may have the result of the chunk from an earlier session: it must be the same here.
  [[nodiscard]] bool may_be_known(std::uint32_t sequence) const {
    return known_chunks_ != 0 && sequence - first_sequence_ < known_chunks_;
  }
  /// `sequence` opens a slot. Known chunks are over when every rank has come past them: far later
  /// their sequences are used again.
  void opened(std::uint32_t sequence);
  [[nodiscard]] const SlotTable& slots() const { return *slots_; }

 private:
  void mark_gone(std::uint16_t rank, const proto::AbortBody& cause);
  [[nodiscard]] std::uint32_t resume_point(std::uint32_t first_sequence) const;
  [[nodiscard]] std::uint32_t count_known_chunks() const;

  std::uint32_t epoch_;
  std::unique_ptr<SessionGuard> guard_;
  Terms terms_;
  proto::Endpoint group_;  // address 0: none
  std::uint32_t first_sequence_ = 0;
  std::uint32_t known_chunks_ = 0;  // from the first sequence on
  std::uint16_t joined_ = 0;
  std::uint16_t moves_ = 0;
  Time full_since_ = 0;
  Time probed_ = 0;
  Time called_ = 0;
  std::optional<Time> contested_since_;
  Time contested_ = 0;  // last
  std::vector<Member> members_;
  std::vector<Peer> everybody_;
  std::vector<Peer> hearing_group_;
  std::vector<Peer> deaf_;
  std::optional<SlotTable> slots_;
  std::optional<LossWatch> losses_;
  std::optional<StragglerWatch> watch_;
  std::optional<Backlog> backlog_;
  std::optional<proto::AbortBody> departed_;
  std::optional<proto::AbortBody> aborted_;
};

}  // namespace natagg::aggregator
