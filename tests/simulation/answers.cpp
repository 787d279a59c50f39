// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/answers.hpp"

#include <algorithm>
#include <numeric>

#include "proto/packet.hpp"

namespace natagg::simulation {

Answers::Answers(World& world, std::size_t ranks) : world_(ranks) {
  const auto at_aggregator = [&world](const proto::Endpoint& endpoint) {
    return std::ranges::any_of(world.aggregators(),
                               [&](const AggregatorHost& host) { return host.owns(endpoint); });
  };
  const auto see = [this](Time, const proto::Endpoint&, const proto::Endpoint&,
                          std::span<const std::byte> datagram) { hear(datagram); };
  world.network().add_tap({.at = at_aggregator, .see = see});
}

const Answers::Chunk* Answers::find(std::uint32_t operation, std::uint64_t element) const {
  const auto found = chunks_.find({operation, element});
  return found == chunks_.end() ? nullptr : &found->second;
}

bool Answers::contradictory() const {
  return std::ranges::any_of(chunks_,
                             [](const auto& chunk) { return chunk.second.ranks.size() > 1; });
}

void Answers::hear(std::span<const std::byte> datagram) {
  if (proto::validate(datagram, proto::Keys::kSome) != proto::Reject::kNone) return;
  const proto::Header header = proto::read_header(datagram);
  // A worker sends PARTIAL too, and the packets that arrive are heard as well.
  const bool partial =
      header.type == proto::Type::kPartial && header.rank.value() == proto::kAggregatorRank;
  if (header.type != proto::Type::kResult && !partial) return;
  Ranks ranks(world_);
  std::iota(ranks.begin(), ranks.end(), std::uint16_t{0});
  if (partial) {
    const auto set = proto::rank_set(datagram);
    if (proto::count_ranks(set, world_) == 0) return;
    std::erase_if(ranks, [&](std::uint16_t rank) { return !proto::holds(set, rank); });
  }
  Chunk& chunk = chunks_[{header.operation.value(), header.element.value()}];
  chunk.count = header.count.value();
  if (chunk.ranks.insert(ranks).second && partial) ++partial_chunks_;
}

}  // namespace natagg::simulation
