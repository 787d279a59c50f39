// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The keys of one session of a job that has a key: one that the shard sends with, and one for each
// member. It lives as long as its session, whose packets no other keys fit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/authentication.hpp"

namespace natagg::aggregator {

/// What an authenticated JOIN says about its sender.
struct Joiner {
  std::uint16_t rank = 0;
  std::uint64_t instance = 0;
  proto::Nonce nonce{};
  std::uint32_t counter = 0;  // of its JOINs
};

class SessionGuard {
 public:
  /// `key` outlives this. `nonce` must never have been a session's before.
  SessionGuard(const proto::JobKey& key, std::uint32_t epoch, const proto::Nonce& nonce,
               std::uint16_t world);

  [[nodiscard]] const proto::Nonce& nonce() const { return nonce_; }

  /// True when this JOIN, or a later one, of the same instance has been admitted, also when another
  /// instance has had the rank since.
  [[nodiscard]] bool replays(const Joiner& joiner) const;

  /// Makes the keys of a rank that has joined. Throws when there is no memory for them.
  void admit(const Joiner& joiner);

  [[nodiscard]] proto::Trailer seal(proto::Parts parts) { return sealer_.seal(parts); }

  /// Of a packet that says that it is from `rank`.
  [[nodiscard]] proto::Opener::Verdict open(std::uint16_t rank,
                                            std::span<const std::byte> datagram);

 private:
  /// Of a rank's earlier instances, so many are remembered: more than can come and go, each by its
  /// silence, while a challenge is good.
  static constexpr std::size_t kEarlier = 16;

  struct Member {
    Joiner joiner;
    std::vector<Joiner> earlier;
    std::optional<proto::Opener> opener;  // once it has joined
  };

  const proto::JobKey& key_;
  std::uint32_t epoch_;
  proto::Nonce nonce_;
  proto::Sealer sealer_;
  std::vector<Member> members_;
};

}  // namespace natagg::aggregator
