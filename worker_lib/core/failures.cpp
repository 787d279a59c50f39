// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/failures.hpp"

namespace natagg::worker {
namespace {

std::string milliseconds(Time time) {
  return std::to_string(time / 1'000'000) + " ms";
}

std::string submitted(std::uint16_t rank, std::uint64_t fingerprint, std::uint32_t operation) {
  return "rank " + std::to_string(rank) + " submitted a " +
         to_string(proto::from_fingerprint(fingerprint)) + " as operation " +
         std::to_string(operation);
}

/// A rank left: because of another rank, or of an aggregator, or of its own accord.
Failure left(const proto::AbortBody& body, const std::string& at) {
  const std::uint16_t leaver = body.rank.value();
  const std::uint16_t missing = body.other_rank.value();
  const std::string name = "rank " + std::to_string(leaver);
  const std::string blamed = "rank " + std::to_string(missing);
  switch (body.cause) {
    case proto::LeaveReason::kTimedOut:
      if (missing == proto::kAggregatorRank) {
        return {NATAGG_RANK_LOST, leaver, name + " left: its operation missed its deadline" + at};
      }
      return {NATAGG_RANK_LOST, missing,
              blamed + " is missing: " + name + " gave up waiting for it" + at};
    case proto::LeaveReason::kRankLost:
      if (missing == proto::kAggregatorRank) break;
      return {NATAGG_RANK_LOST, missing, blamed + " is lost: " + name + " left because of it" + at};
    case proto::LeaveReason::kAggregatorLost:
      return {NATAGG_AGGREGATOR_LOST, -1, name + " left: an aggregator of the pool is lost" + at};
    case proto::LeaveReason::kMismatch:
      return {NATAGG_MISMATCH, leaver,
              name + " left: the ranks submitted different operations" + at};
    case proto::LeaveReason::kRefused:
      return {NATAGG_RANK_LOST, leaver, name + " left: an aggregator of the pool refuses it" + at};
    case proto::LeaveReason::kClosed: break;
  }
  return {NATAGG_RANK_LOST, leaver, name + " left while others wait for it" + at};
}

}  // namespace

Failure aborted(const proto::Endpoint& shard, const proto::AbortBody& body) {
  const std::string at = " (aggregator " + to_string(shard) + ")";
  switch (body.reason) {
    case proto::AbortReason::kMemberLeft: return left(body, at);
    case proto::AbortReason::kMemberSilent:
      return {NATAGG_RANK_LOST, body.rank.value(),
              "rank " + std::to_string(body.rank.value()) + " fell silent" + at};
    case proto::AbortReason::kMismatch:
      return {NATAGG_MISMATCH, body.rank.value(),
              "ranks disagree: " +
                  submitted(body.rank.value(), body.fingerprint.value(), body.operation.value()) +
                  ", " +
                  submitted(body.other_rank.value(), body.other_fingerprint.value(),
                            body.other_operation.value()) +
                  at,
              body};
    case proto::AbortReason::kUnknownSession:
      return {NATAGG_AGGREGATOR_LOST, -1,
              "aggregator " + to_string(shard) +
                  " does not know this session: it was restarted, or dropped the job"};
    case proto::AbortReason::kLeftBehind:
      return {NATAGG_RANK_LOST, body.rank.value(),
              "rank " + std::to_string(body.rank.value()) +
                  " was left behind: it was late by more than is kept for it" + at};
    case proto::AbortReason::kSuperseded:
      return {NATAGG_REFUSED, -1, "the job has formed anew without this worker" + at};
  }
  return {NATAGG_AGGREGATOR_LOST, -1,
          "aggregator " + to_string(shard) + " ended the session for an unknown reason"};
}

std::string key_refused(const proto::Endpoint& aggregator, std::uint32_t job,
                        proto::RefuseReason reason) {
  const std::string name = "job " + std::to_string(job);
  const std::string who = "aggregator " + to_string(aggregator);
  if (reason == proto::RefuseReason::kKeyRequired) {
    return name + " needs a key at " + who + ", and this rank has none: give it the key file";
  }
  const std::string refused = "key of " + name + " refused by " + who + ": ";
  return refused + (reason == proto::RefuseReason::kWrongKey
                        ? "it has another one for this job"
                        : "it has none for this job; key_directory is the place");
}

Failure aggregator_silent(const proto::Endpoint& shard, Time silence) {
  return {NATAGG_AGGREGATOR_LOST, -1,
          "aggregator " + to_string(shard) + " has been silent for " + milliseconds(silence)};
}

Failure not_resumed(const std::string& where, int rank) {
  return {rank >= 0 ? NATAGG_RANK_LOST : NATAGG_AGGREGATOR_LOST, rank,
          "an aggregator was lost, and the job cannot be resumed: " + where};
}

Failure no_room_for_ranks(std::uint16_t world) {
  return {NATAGG_INVALID_ARGUMENT, -1,
          "straggler_deadline: the path's packets have no room for a list of " +
              std::to_string(world) + " ranks"};
}

Failure contradicted(const proto::Endpoint& shard, const proto::Header& header) {
  return {NATAGG_AGGREGATOR_LOST, -1,
          "an aggregator was lost, and its successor " + to_string(shard) +
              " answers otherwise: operation " + std::to_string(header.operation.value()) +
              ", values from " + std::to_string(header.element.value()) + " on, sequence " +
              std::to_string(header.sequence.value())};
}

Failure overdue(const PendingOperation& operation, const Channel* channel, const Flight* flight,
                Time now) {
  Failure failure{NATAGG_TIMED_OUT, -1,
                  "operation " + std::to_string(operation.index) + " (" +
                      to_string(operation.submission.operation) + ") missed its deadline with " +
                      std::to_string(operation.remaining) + " of " +
                      std::to_string(operation.chunks) + " chunks to come"};
  if (flight == nullptr) return failure;
  failure.message += ": values " + std::to_string(flight->element) + " to " +
                     std::to_string(flight->element + flight->count - 1) + " at aggregator " +
                     to_string(channel->session().endpoint);
  if (flight->missing_count == 0 && flight->held_back) {
    failure.rank = flight->missing;
    failure.message += " are held back for rank " + std::to_string(flight->missing) +
                       ", which is a window of chunks behind";
    return failure;
  }
  if (flight->missing_count == 0) {
    failure.message += " are unanswered; it was last heard " +
                       milliseconds(now - channel->silent_since()) + " ago";
    return failure;
  }
  failure.rank = flight->missing;
  failure.message += " wait for rank " + std::to_string(flight->missing);
  if (flight->missing_count > 1) {
    failure.message += " and " + std::to_string(flight->missing_count - 1) + " more";
  }
  return failure;
}

}  // namespace natagg::worker
