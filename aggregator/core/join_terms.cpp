// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/join_terms.hpp"

#include <algorithm>
#include <bit>

namespace natagg::aggregator {
namespace {

using proto::Header;

std::optional<Refusal> check_partial(const Terms& terms, proto::Keys keys,
                                     const ShardConfig& config) {
  using enum proto::RefuseReason;
  if (terms.world > proto::kMaxPartialWorld) {
    return Refusal{kPartialWorld, terms.world, proto::kMaxPartialWorld};
  }
  if (terms.quorum == 0 || terms.quorum > terms.world) {
    return Refusal{kQuorum, terms.quorum, terms.world};
  }
  if (proto::partial_datagram_size(terms.values, terms.world, keys) >
      proto::datagram_size(config.max_values)) {
    return Refusal{kValues, terms.values,
                   proto::partial_values(config.max_values, terms.world, keys)};
  }
  return std::nullopt;
}

}  // namespace

Terms terms_of(const Header& header, const proto::JoinBody& body) {
  return {.seed = body.seed.value(),
          .world = body.world.value(),
          .shard = body.shard.value(),
          .shards = body.shards.value(),
          .values = body.values.value(),
          .window = body.window.value(),
          .rounding = body.rounding,
          .shift = header.shift,
          .values_pinned = (body.flags & proto::kJoinValuesPinned) != 0,
          .stragglers = body.stragglers.value(),
          .quorum = body.quorum.value()};
}

Claim claim_of(const proto::JoinBody& body) {
  return {.members = body.members.value(),
          .resume = body.resume.value(),
          .held = body.held.value(),
          .moves = body.moves.value(),
          .untouched = body.members.value() == 0 || (body.flags & proto::kJoinUntouched) != 0};
}

proto::Keys keys_of(const Header& header) {
  return (header.flags & proto::kFlagAuthenticated) != 0 ? proto::Keys::kSome : proto::Keys::kNone;
}

std::size_t least_length(const Terms& terms, proto::Keys keys) {
  const std::size_t largest = terms.stragglers == 0
                                  ? proto::datagram_size(terms.values)
                                  : proto::partial_datagram_size(terms.values, terms.world, keys);
  return std::max(largest, sizeof(Header) + sizeof(proto::WelcomeBody));
}

std::optional<Refusal> check_terms(const Terms& terms, std::uint16_t rank, proto::Keys keys,
                                   const ShardConfig& config) {
  using enum proto::RefuseReason;
  if (terms.world == 0) return Refusal{kWorld, 0, 1};
  if (terms.world > config.max_workers) {
    return Refusal{kTooManyWorkers, terms.world, config.max_workers};
  }
  if (rank >= terms.world) return Refusal{kRank, rank, terms.world};
  if (terms.values < proto::kMinValues || terms.values % proto::kValuesMultiple != 0 ||
      terms.values > config.max_values) {
    return Refusal{kValues, terms.values, config.max_values};
  }
  if (!std::has_single_bit(terms.window)) {
    return Refusal{kWindow, terms.window, config.max_window};
  }
  if (terms.shift > nat8::kMaxShift || terms.shift < -nat8::kMaxShift) {
    return Refusal{kShift, static_cast<std::uint64_t>(terms.shift), nat8::kMaxShift};
  }
  if (terms.rounding > 1) return Refusal{kRounding, terms.rounding, 1};
  if (terms.shard >= terms.shards) return Refusal{kPool, terms.shard, terms.shards};
  return terms.stragglers == 0 ? std::nullopt : check_partial(terms, keys, config);
}

}  // namespace natagg::aggregator
