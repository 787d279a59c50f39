// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/leave_cause.hpp"

namespace natagg::aggregator {

std::optional<proto::AbortBody> leave_cause(const proto::LeaveBody& body, std::uint16_t rank,
                                            std::uint16_t world) {
  using enum proto::LeaveReason;
  const std::uint16_t named = body.rank.value();
  proto::AbortBody cause{};
  switch (body.reason) {
    case kMismatch:
      if (named >= world || body.other_rank.value() >= world) return std::nullopt;
      cause.reason = proto::AbortReason::kMismatch;
      cause.fingerprint = body.fingerprint;
      cause.other_fingerprint = body.other_fingerprint;
      cause.operation = body.operation;
      cause.other_operation = body.other_operation;
      cause.rank = body.rank;
      cause.other_rank = body.other_rank;
      return cause;
    case kClosed:
    case kTimedOut:
    case kRankLost:
    case kAggregatorLost:
    case kRefused:
      if (named >= world && named != proto::kAggregatorRank) return std::nullopt;
      cause.reason = proto::AbortReason::kMemberLeft;
      cause.rank = proto::Be16{rank};
      cause.other_rank = body.rank;
      cause.cause = body.reason;
      return cause;
  }
  return std::nullopt;
}

}  // namespace natagg::aggregator
