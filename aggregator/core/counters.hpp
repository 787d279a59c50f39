// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a shard counts, each with the one name that logs, telemetry and documentation use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proto/packet.hpp"

namespace natagg::aggregator {

/// The first rows are proto::Reject, so that a rejected datagram is counted by its reason.
enum class Counter : std::uint8_t {
  kAccepted = 0,
  kTooShort,
  kBadMagic,
  kBadVersion,
  kBadType,
  kBadLength,
  kBadCount,
  kBadCodec,
  kBadOperation,
  kUnauthenticated,
  // Packets that are well formed and still dropped.
  kWrongKey,
  kBadMac,
  kReplayed,
  kChallenges,
  kUnexpectedType,
  kUnknownSession,
  kStaleEpoch,
  kBadRank,
  kBadLeave,
  kWrongSource,
  kBadSlot,
  kBadTerms,
  kMalformedByte,
  kStaleSequence,
  kEarlySequence,
  kHeldBack,
  kDuplicateOpen,
  kMismatch,
  kDeparted,
  kEnded,
  kUnpadded,
  // Work done.
  kContributions,
  kResults,
  kCachedResults,
  kDeafened,
  kPartialResults,
  kKnownResults,
  kLateContributions,
  kLeftBehind,
  kPendingReplies,
  kNacks,
  kWideSlots,
  kJoins,
  kRefusals,
  kSessions,
  kResumedSessions,
  kMoves,
  kLeaves,
  kSilentMembers,
  kAborts,
  // Values in results.
  kValuesClipped,
  kValuesZero,
  kValuesInf,
  kValuesNan,
};

struct CounterInfo {
  Counter counter;
  std::string_view name;
  std::string_view help;
};

inline constexpr std::array kCounters = {
    CounterInfo{Counter::kAccepted, "accepted", "well-formed packets"},
    CounterInfo{Counter::kTooShort, "too_short", "dropped: shorter than header or body"},
    CounterInfo{Counter::kBadMagic, "bad_magic", "dropped: not a natagg packet"},
    CounterInfo{Counter::kBadVersion, "bad_version", "dropped: another protocol version"},
    CounterInfo{Counter::kBadType, "bad_type", "dropped: unknown packet type"},
    CounterInfo{Counter::kBadLength, "bad_length", "dropped: length is not header + values"},
    CounterInfo{Counter::kBadCount, "bad_count", "dropped: no values, or too many"},
    CounterInfo{Counter::kBadCodec, "bad_codec", "dropped: values are not nat8"},
    CounterInfo{Counter::kBadOperation, "bad_operation", "dropped: chunk outside its operation"},
    CounterInfo{Counter::kUnauthenticated, "unauthenticated",
                "dropped: no MAC though the job needs one, or one though it has no key"},
    CounterInfo{Counter::kWrongKey, "wrong_key", "refused: HELLO or JOIN made with another key"},
    CounterInfo{Counter::kBadMac, "bad_mac", "dropped: the MAC is not its sender's"},
    CounterInfo{Counter::kReplayed, "replayed", "dropped: authentic, and seen before"},
    CounterInfo{Counter::kChallenges, "challenges", "JOIN packets that must prove to be new"},
    CounterInfo{Counter::kUnexpectedType, "unexpected_type", "dropped: a type workers do not send"},
    CounterInfo{Counter::kUnknownSession, "unknown_session", "answered ABORT: no such job"},
    CounterInfo{Counter::kStaleEpoch, "stale_epoch", "answered ABORT: another epoch of the job"},
    CounterInfo{Counter::kBadRank, "bad_rank", "dropped: rank outside the world"},
    CounterInfo{Counter::kBadLeave, "bad_leave",
                "dropped: LEAVE for a reason, or because of ranks, that there are not"},
    CounterInfo{Counter::kWrongSource, "wrong_source", "dropped: not the member's address"},
    CounterInfo{Counter::kBadSlot, "bad_slot", "dropped: slot is not sequence modulo window"},
    CounterInfo{Counter::kBadTerms, "bad_terms", "dropped: count, shift or rounding not as agreed"},
    CounterInfo{Counter::kMalformedByte, "malformed_byte", "dropped: a value byte is not nat8"},
    CounterInfo{Counter::kStaleSequence, "stale_sequence", "dropped: chunk long finished"},
    CounterInfo{Counter::kEarlySequence, "early_sequence", "dropped: chunk ahead of the window"},
    CounterInfo{Counter::kHeldBack, "held_back",
                "dropped: a rank has yet to come to a chunk many windows before"},
    CounterInfo{Counter::kDuplicateOpen, "duplicate_open", "dropped: contribution already added"},
    CounterInfo{Counter::kMismatch, "mismatch", "ranks submitted different operations"},
    CounterInfo{Counter::kDeparted, "departed", "answered ABORT: a member is gone"},
    CounterInfo{Counter::kEnded, "ended", "answered ABORT: the session has ended"},
    CounterInfo{Counter::kUnpadded, "unpadded", "dropped: HELLO or JOIN shorter than its answer"},
    CounterInfo{Counter::kContributions, "contributions", "chunks added to slots"},
    CounterInfo{Counter::kResults, "results", "slots finished"},
    CounterInfo{Counter::kCachedResults, "cached_results",
                "finished chunks sent again to one rank"},
    CounterInfo{Counter::kDeafened, "deafened",
                "members that multicast stopped reaching, sent to by unicast since"},
    CounterInfo{Counter::kPartialResults, "partial_results",
                "of the results, those without ranks that were late"},
    CounterInfo{Counter::kKnownResults, "known_results",
                "results that a rank had from an aggregator that is lost"},
    CounterInfo{Counter::kLateContributions, "late_contributions",
                "chunks that came after their partial result, and are not in it"},
    CounterInfo{Counter::kLeftBehind, "left_behind",
                "members that were so late that the others went on without them"},
    CounterInfo{Counter::kPendingReplies, "pending_replies", "duplicates answered PENDING"},
    CounterInfo{Counter::kNacks, "nacks", "ranks told of chunks that they lost"},
    CounterInfo{Counter::kWideSlots, "wide_slots", "slots that took 80-bit sums"},
    CounterInfo{Counter::kJoins, "joins", "JOIN packets accepted"},
    CounterInfo{Counter::kRefusals, "refusals", "JOIN or HELLO packets refused"},
    CounterInfo{Counter::kSessions, "sessions", "sessions that became ready"},
    CounterInfo{Counter::kResumedSessions, "resumed_sessions",
                "of those, of jobs that had lost an aggregator"},
    CounterInfo{Counter::kMoves, "moves", "calls to the ranks of a place that moves here"},
    CounterInfo{Counter::kLeaves, "leaves", "members that left"},
    CounterInfo{Counter::kSilentMembers, "silent_members", "members that fell silent"},
    CounterInfo{Counter::kAborts, "aborts", "sessions aborted"},
    CounterInfo{Counter::kValuesClipped, "values_clipped",
                "result values clipped to the largest code"},
    CounterInfo{Counter::kValuesZero, "values_zero", "result values that are zero"},
    CounterInfo{Counter::kValuesInf, "values_inf", "result values that are infinite"},
    CounterInfo{Counter::kValuesNan, "values_nan", "result values that are NaN"},
};

/// Every row stands at its counter's number, so the table can be indexed by it.
consteval bool counters_in_order() {
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    if (static_cast<std::size_t>(kCounters[i].counter) != i) return false;
  }
  return kCounters.back().counter == Counter::kValuesNan;
}
static_assert(counters_in_order());
static_assert(static_cast<int>(Counter::kUnauthenticated) ==
              static_cast<int>(proto::Reject::kUnauthenticated));

/// One writer, the shard's lcore; other threads read a copy that its owner publishes.
class Counters {
 public:
  void add(Counter counter, std::uint64_t n = 1) {
    values_[static_cast<std::size_t>(counter)] += n;
  }
  void add(proto::Reject reject) { ++values_[static_cast<std::size_t>(reject)]; }
  [[nodiscard]] std::uint64_t operator[](Counter counter) const {
    return values_[static_cast<std::size_t>(counter)];
  }
  [[nodiscard]] const std::array<std::uint64_t, kCounters.size()>& values() const {
    return values_;
  }

 private:
  std::array<std::uint64_t, kCounters.size()> values_{};
};

}  // namespace natagg::aggregator
