// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Tells those who cannot join why.
#pragma once

#include <cstdint>
#include <span>

#include "aggregator/core/counters.hpp"
#include "aggregator/core/job_table.hpp"
#include "aggregator/core/outbox.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

class Refusing {
 public:
  /// `counters` and `outbox` are the shard's and outlive this.
  Refusing(Counters& counters, Outbox& outbox) : counters_(counters), outbox_(outbox) {}

  /// One worker, whose HELLO or JOIN, for `place`, is `request`.
  void refuse(const proto::Header& request, const Peer& source, std::uint64_t instance,
              const Refusal& refusal, proto::Be16 place = proto::Be16{});

  /// Members of a session that cannot begin.
  void refuse_all(const Job& job, const Session& session, std::span<const Peer> to,
                  proto::RefuseReason reason);

  /// A worker that speaks another version or codec, or has a key where there are none, which it
  /// could not find out otherwise.
  /// Magic, version, type and the instance's place are the same in every version.
  void refuse_foreign(std::span<const std::byte> datagram, const Peer& source,
                      proto::Reject reject);

  /// The sender of a HELLO or JOIN, for what the guard found.
  void refuse_key(const proto::Header& header, std::span<const std::byte> datagram,
                  const Peer& source, proto::RefuseReason reason);

 private:
  Counters& counters_;
  Outbox& outbox_;
};

}  // namespace natagg::aggregator
