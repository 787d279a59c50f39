// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/session_guard.hpp"

#include <algorithm>

namespace natagg::aggregator {

SessionGuard::SessionGuard(const proto::JobKey& key, std::uint32_t epoch, const proto::Nonce& nonce,
                           std::uint16_t world)
    : key_(key),
      epoch_(epoch),
      nonce_(nonce),
      sealer_(key.aggregator_session(epoch, nonce)),
      members_(world) {}

bool SessionGuard::replays(const Joiner& joiner) const {
  if (joiner.rank >= members_.size()) return false;  // it proposes another world
  const Member& member = members_[joiner.rank];
  const auto is = [&](const Joiner& admitted) {
    return admitted.instance == joiner.instance && joiner.counter <= admitted.counter;
  };
  return member.opener &&
         (is(member.joiner) || std::any_of(member.earlier.begin(), member.earlier.end(), is));
}

void SessionGuard::admit(const Joiner& joiner) {
  Member& member = members_[joiner.rank];
  if (member.opener && member.joiner.instance != joiner.instance) {
    if (member.earlier.size() == kEarlier) member.earlier.erase(member.earlier.begin());
    member.earlier.push_back(member.joiner);
  }
  if (!member.opener || member.joiner.nonce != joiner.nonce) {
    member.opener.emplace(key_.worker_session(epoch_, nonce_, joiner.rank, joiner.nonce));
  }
  member.joiner = joiner;
}

proto::Opener::Verdict SessionGuard::open(std::uint16_t rank, std::span<const std::byte> datagram) {
  if (rank >= members_.size() || !members_[rank].opener) return proto::Opener::Verdict::kForged;
  return members_[rank].opener->open(datagram);
}

}  // namespace natagg::aggregator
