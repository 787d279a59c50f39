// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a JOIN asks for, and whether any session could have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "aggregator/core/claim.hpp"
#include "aggregator/core/session.hpp"
#include "aggregator/core/shard_config.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

[[nodiscard]] Terms terms_of(const proto::Header& header, const proto::JoinBody& body);
[[nodiscard]] Claim claim_of(const proto::JoinBody& body);

/// Whether the job has a key, going by its JOIN.
[[nodiscard]] proto::Keys keys_of(const proto::Header& header);

/// Bytes that a JOIN with these terms must have: as many as any packet of the session or answer.
[[nodiscard]] std::size_t least_length(const Terms& terms, proto::Keys keys);

/// Why no session of a shard of `config` can have these terms, and this rank.
[[nodiscard]] std::optional<Refusal> check_terms(const Terms& terms, std::uint16_t rank,
                                                 proto::Keys keys, const ShardConfig& config);

}  // namespace natagg::aggregator
