// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The shards of a job that has a key, as a worker meets them: they seal, and they check what the
// worker has sealed. Written anew from proto/specification.md, section 7, rather than with the
// guard of aggregator/core, so that either is a check of the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "keys.hpp"

namespace natagg::fuzz {

class KeyShards {
 public:
  KeyShards(std::uint32_t job, std::uint16_t rank) : key_(job_key(job)), rank_(rank) {}

  /// What the worker sent to `shard`: it must be sealed with keys that it may have, and be new.
  void hear(std::span<const std::byte> datagram, const proto::Endpoint& shard);

  /// Seals as `shard`, in answer to the worker's latest question; false leaves what would not be
  /// well formed.
  bool seal(Datagram& datagram, const proto::Endpoint& shard);

  /// Null for what none of the shards has sealed.
  [[nodiscard]] Sealed* find(std::span<const std::byte> datagram) { return ledger_.find(datagram); }

 private:
  struct Question {
    proto::Nonce worker{};
    proto::Be32 counter{};
  };

  using SessionName = std::pair<proto::Endpoint, std::uint32_t>;  // and its epoch

  static proto::Nonce nonce_of(const SessionName& name);
  proto::Sealer& sealer(const SessionName& name);
  [[nodiscard]] proto::Proof prove(const proto::Header& header, const SessionName& name);

  const proto::JobKey& key_;
  std::uint16_t rank_;
  proto::Hmac hmac_;
  std::map<proto::Endpoint, Question> hellos_;
  std::map<proto::Endpoint, Question> joins_;
  std::map<proto::Endpoint, proto::Trailer> latest_;  // of what belongs to sessions
  std::map<SessionName, proto::Sealer> sealers_;
  std::map<std::pair<SessionName, proto::Nonce>, proto::Opener> openers_;  // by the worker's nonce
  std::uint32_t heard_ = 0;  // HELLOs and JOINs, whose counters only go up
  Ledger ledger_;
};

}  // namespace natagg::fuzz
