// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/refusing.hpp"

namespace natagg::aggregator {

using proto::Be16;
using proto::Be64;
using proto::Header;
using proto::RefuseReason;
using proto::Reject;
using proto::Type;

void Refusing::refuse(const Header& request, const Peer& source, std::uint64_t instance,
                      const Refusal& refusal, Be16 place) {
  counters_.add(Counter::kRefusals);
  const proto::RefuseBody body{.instance = Be64{instance},
                               .yours = Be64{refusal.yours},
                               .ours = Be64{refusal.ours},
                               .reason = refusal.reason,
                               .reserved = 0,
                               .shard = place};
  outbox_.add(source, answer(request, Type::kRefuse), body);
}

void Refusing::refuse_foreign(std::span<const std::byte> datagram, const Peer& source,
                              Reject reject) {
  const bool keyed = reject == Reject::kUnauthenticated;
  if (reject != Reject::kBadVersion && reject != Reject::kBadCodec && !keyed) return;
  if (datagram.size() < sizeof(Header) + sizeof(proto::RefuseBody)) return;
  const Header header = proto::read_header(datagram);
  if (header.type != Type::kHello && header.type != Type::kJoin) return;
  const std::uint64_t instance = proto::read_body<proto::HelloBody>(datagram).instance.value();
  if (keyed) {
    refuse(header, source, instance, {RefuseReason::kNoKey});
  } else if (reject == Reject::kBadVersion) {
    refuse(header, source, instance,
           {RefuseReason::kProtocolVersion, header.version, proto::kVersion});
  } else {
    refuse(header, source, instance,
           {RefuseReason::kCodec, static_cast<std::uint64_t>(header.flags >> 4),
            static_cast<std::uint64_t>(proto::Codec::kNat8)});
  }
}

void Refusing::refuse_key(const Header& header, std::span<const std::byte> datagram,
                          const Peer& source, RefuseReason reason) {
  if (header.type != Type::kHello && header.type != Type::kJoin) return;
  if (datagram.size() < sizeof(Header) + sizeof(proto::RefuseBody)) return;
  Be16 place{};
  if (header.type == Type::kJoin) place = proto::read_body<proto::JoinBody>(datagram).shard;
  refuse(header, source, proto::instance_of(header, datagram), {reason}, place);
}

void Refusing::refuse_all(const Job& job, const Session& session, std::span<const Peer> to,
                          RefuseReason reason) {
  counters_.add(Counter::kRefusals);
  const proto::RefuseBody body{.instance = Be64{},
                               .yours = Be64{session.terms().world},
                               .ours = Be64{session.terms().world},
                               .reason = reason,
                               .reserved = 0,
                               .shard = Be16{session.terms().shard}};
  outbox_.add(to, session_header(job, session, Type::kRefuse), body);
}

}  // namespace natagg::aggregator
