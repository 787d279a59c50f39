// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Puts what went wrong into words: which rank, which chunk, which aggregator, which numbers.
#pragma once

#include <cstdint>
#include <string>

#include "worker_lib/core/channel.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::worker {

/// An aggregator ended the session.
[[nodiscard]] Failure aborted(const proto::Endpoint& shard, const proto::AbortBody& body);

/// What is wrong with the key of `job`, by the aggregator's reason.
[[nodiscard]] std::string key_refused(const proto::Endpoint& aggregator, std::uint32_t job,
                                      proto::RefuseReason reason);

/// An aggregator has not been heard for `silence`.
[[nodiscard]] Failure aggregator_silent(const proto::Endpoint& shard, Time silence);

/// The ranks have not all joined again after an aggregator was lost; `rank` is the first of those
/// missing, -1 for none.
[[nodiscard]] Failure not_resumed(const std::string& where, int rank);

/// The path's packets cannot list so many ranks beside any values.
[[nodiscard]] Failure no_room_for_ranks(std::uint16_t world);

/// The chunk of `header` was answered before an aggregator was lost, and otherwise than now.
[[nodiscard]] Failure contradicted(const proto::Endpoint& shard, const proto::Header& header);

/// `operation` has missed its deadline. `flight` is its oldest unanswered chunk and `channel`
/// where that is under way; both nullptr when none is.
[[nodiscard]] Failure overdue(const PendingOperation& operation, const Channel* channel,
                              const Flight* flight, Time now);

}  // namespace natagg::worker
