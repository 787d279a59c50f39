// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a LEAVE means to those who stay. The leaver may have heard the cause from another shard, and
// they hear it here first.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/packet.hpp"

namespace natagg::aggregator {

/// The ABORT for the others of a session of `world` ranks that `rank` leaves as `body` says. None
/// when there is no such reason or rank.
[[nodiscard]] std::optional<proto::AbortBody> leave_cause(const proto::LeaveBody& body,
                                                          std::uint16_t rank, std::uint16_t world);

}  // namespace natagg::aggregator
