// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/guard.hpp"

#include <cstring>
#include <exception>
#include <string_view>

namespace natagg::aggregator {
namespace {

using proto::Header;
using proto::Nonce;
using proto::RefuseReason;
using proto::Type;

/// Anybody can send what belongs to no session; so little of it is answered. A worker whose session
/// is gone sends enough.
constexpr Time kUnknownInterval = 1'000'000;

/// A challenge is good for the rest of the period it was made in, and the next.
constexpr Time kChallengePeriod = 2'000'000'000;

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

proto::Secret derive(const proto::Hmac& hmac, const ShardConfig& config, std::string_view purpose) {
  const proto::Be16 index{config.index};
  const std::span<const std::byte> parts[] = {bytes_of(purpose), bytes_of(index)};
  return hmac(config.entropy, parts);
}

Nonce first_half(const proto::Secret& secret) {
  Nonce nonce;
  std::memcpy(nonce.data(), secret.data(), nonce.size());
  return nonce;
}

/// A worker that is refused for its key cannot check what is sealed with another.
bool sent_plain(const Header& header, const Outgoing& outgoing) {
  if (header.type != Type::kRefuse) return false;
  const RefuseReason reason = proto::read_body<proto::RefuseBody>(outgoing.head).reason;
  return reason == RefuseReason::kWrongKey || reason == RefuseReason::kNoKey ||
         reason == RefuseReason::kKeyRequired;
}

}  // namespace

Guard::Guard(const ShardConfig& config, Counters& counters)
    : keys_(config.keys),
      others_(config.jobs_without_key),
      counters_(counters),
      challenges_(derive(hmac_, config, "challenges")),
      sessions_(derive(hmac_, config, "sessions")) {}

const proto::JobKey* Guard::find_key(std::uint32_t job) const {
  const auto found = keys_->find(job);
  return found != keys_->end() ? &found->second : nullptr;
}

Guard::Verdict Guard::judge(const Header& header, std::span<const std::byte> datagram,
                            const Peer& source, SessionGuard* session, Time now) {
  const bool sealed = (header.flags & proto::kFlagAuthenticated) != 0;
  if (session != nullptr && sealed && header.type == Type::kData) {  // nearly all there is
    return judge_session(header, datagram, session, now);
  }
  const proto::JobKey* key = find_key(header.job.value());
  if (key == nullptr) {
    if (sealed) return refuse(RefuseReason::kNoKey, Counter::kUnauthenticated);
    return others_ ? Verdict::kAdmitted
                   : refuse(RefuseReason::kKeyRequired, Counter::kUnauthenticated);
  }
  if (!sealed) return refuse(RefuseReason::kKeyRequired, Counter::kUnauthenticated);
  if (proto::instance_of(header, datagram) == 0)
    return judge_session(header, datagram, session, now);
  try {
    return judge_handshake(*key, header, datagram, source, now);
  } catch (const std::exception&) {  // no memory
    counters_.add(Counter::kBadMac);
    return Verdict::kDropped;
  }
}

Guard::Verdict Guard::refuse(RefuseReason reason, Counter counter) {
  counters_.add(counter);
  refusal_ = reason;
  return Verdict::kRefused;
}

Guard::Verdict Guard::judge_handshake(const proto::JobKey& key, const Header& header,
                                      std::span<const std::byte> datagram, const Peer& source,
                                      Time now) {
  const bool asks = header.type == Type::kHello || header.type == Type::kJoin;
  // As long as any answer, so that nobody can be made to send more than was sent.
  if (!asks || datagram.size() < proto::datagram_size(proto::kMinValues)) {
    counters_.add(asks ? Counter::kTooShort : Counter::kUnexpectedType);
    return Verdict::kDropped;
  }
  if (!hmac_.proves(key.handshake(proto::Side::kWorker), datagram)) {
    return refuse(RefuseReason::kWrongKey, Counter::kWrongKey);
  }
  const proto::Proof proof = proto::read_proof(datagram);
  asker_ = proof.worker;
  question_ = proto::read_trailer(datagram).counter;
  if (header.type == Type::kHello) return Verdict::kAdmitted;
  const Time period = now / kChallengePeriod;
  challenge_ = challenge(header, source, period);
  if (proto::equal(proof.aggregator, challenge_) ||
      proto::equal(proof.aggregator, challenge(header, source, period - 1))) {
    return Verdict::kAdmitted;
  }
  counters_.add(Counter::kChallenges);
  return Verdict::kUnchallenged;
}

Guard::Verdict Guard::judge_session(const Header& header, std::span<const std::byte> datagram,
                                    SessionGuard* session, Time now) {
  if (session == nullptr) {
    counters_.add(Counter::kUnknownSession);
    const bool running = header.type == Type::kData || header.type == Type::kPartial ||
                         header.type == Type::kHeartbeat;
    if (!running || now < next_unknown_) return Verdict::kDropped;
    next_unknown_ = now + kUnknownInterval;
    const proto::Trailer trailer = proto::read_trailer(datagram);
    asker_ = trailer.mac;
    question_ = trailer.counter;
    return Verdict::kUnknown;
  }
  switch (session->open(header.rank.value(), datagram)) {
    case proto::Opener::Verdict::kGood: return Verdict::kAdmitted;
    case proto::Opener::Verdict::kReplayed: counters_.add(Counter::kReplayed); break;
    case proto::Opener::Verdict::kForged: counters_.add(Counter::kBadMac); break;
  }
  return Verdict::kDropped;
}

Nonce Guard::challenge(const Header& request, const Peer& source, Time period) const {
  const proto::Be32 address{source.endpoint.address};
  const proto::Be16 port{source.endpoint.port};
  const proto::Be64 when{static_cast<std::uint64_t>(period)};
  const std::span<const std::byte> parts[] = {bytes_of(address),      bytes_of(port),
                                              bytes_of(when),         bytes_of(request.job),
                                              bytes_of(request.rank), bytes_of(asker_)};
  return first_half(hmac_(challenges_, parts));
}

std::unique_ptr<SessionGuard> Guard::make_session(std::uint32_t job, std::uint32_t epoch,
                                                  std::uint16_t world) {
  const proto::JobKey* key = enabled() ? find_key(job) : nullptr;
  if (key == nullptr) return nullptr;
  const proto::Be64 number{made_sessions_++};
  const std::span<const std::byte> part = bytes_of(number);
  return std::make_unique<SessionGuard>(*key, epoch, first_half(hmac_(sessions_, {&part, 1})),
                                        world);
}

void Guard::seal(Outbox& outbox, std::size_t i, const Header& header, SessionGuard* session) {
  const proto::JobKey* key = find_key(header.job.value());
  Outgoing& outgoing = outbox[i];
  if (key == nullptr || sent_plain(header, outgoing)) return;
  const bool proves = proto::has_proof(header, outgoing.head);
  if (!proves && session == nullptr) {
    outgoing.to = {};
    return;
  }
  outbox.make_tail(i, proves);
  const std::span<const std::byte> tail = outgoing.tail;
  try {
    proto::Trailer trailer;
    if (proves) {
      proto::Proof proof{.worker = asker_, .aggregator = {}};
      if (header.type == Type::kChallenge) proof.aggregator = challenge_;
      if (header.type == Type::kWelcome && session != nullptr) proof.aggregator = session->nonce();
      outbox.write_tail(i, 0, bytes_of(proof));
      const std::span<const std::byte> parts[] = {outgoing.head, proto::zeros(outgoing.padding),
                                                  tail.first(sizeof(proto::Proof))};
      trailer = {
          hmac_.handshake(key->handshake(proto::Side::kAggregator), parts, question_.value()),
          question_};
    } else {
      const std::span<const std::byte> parts[] = {outgoing.head, std::as_bytes(outgoing.body),
                                                  proto::zeros(outgoing.padding)};
      trailer = session->seal(parts);
    }
    outbox.write_tail(i, tail.size() - sizeof(trailer), bytes_of(trailer));
  } catch (const std::exception&) {  // no memory
    outgoing.to = {};
  }
}

}  // namespace natagg::aggregator
