// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/guard.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace natagg::worker {
namespace {

using proto::Endpoint;
using proto::Header;
using proto::Nonce;
using proto::Type;

/// The place of an aggregator that is asked for its shards.
constexpr std::uint16_t kAsked = 0xFFFF;

bool is_about_key(const Header& header, std::span<const std::byte> datagram) {
  if (header.type != Type::kRefuse) return false;
  const auto reason = proto::read_body<proto::RefuseBody>(datagram).reason;
  return reason == proto::RefuseReason::kWrongKey || reason == proto::RefuseReason::kNoKey ||
         reason == proto::RefuseReason::kKeyRequired;
}

}  // namespace

Guard::Guard(const StreamConfig& config)
    : config_(config),
      key_(*config.key),
      room_(proto::datagram_size(
                std::max<std::size_t>(config.values, proto::values_for_mtu(config.mtu))) +
            proto::kMaxRankSetBytes) {}

Nonce Guard::make_nonce() {
  const proto::Be64 number{nonces_++};
  const std::span<const std::byte> part = std::as_bytes(std::span(&number, 1));
  const proto::Secret secret = hmac_(config_.entropy, {&part, 1});
  Nonce nonce;
  std::memcpy(nonce.data(), secret.data(), nonce.size());
  return nonce;
}

Guard::Party& Guard::find_party(const Endpoint& endpoint, std::uint16_t place) {
  for (Party& party : parties_) {
    if (party.endpoint == endpoint && party.place == place) return party;
  }
  return parties_.emplace_back(Party{.endpoint = endpoint, .place = place, .nonce = make_nonce()});
}

void Guard::renew(const Endpoint& shard, std::uint16_t place) {
  Party& party = find_party(shard, place);
  std::erase_if(sessions_, [&](const Joined& joined) {
    return std::none_of(parties_.begin(), parties_.end(),
                        [&](const Party& other) { return other.nonce == joined.session->worker; });
  });
  party.nonce = make_nonce();
  party.challenge = {};
}

Guard::Session* Guard::find_session(const Endpoint& endpoint, std::uint32_t epoch) {
  const auto fits = [&](const Joined& joined) {
    return joined.session->epoch == epoch && joined.endpoint == endpoint;
  };
  if (latest_ < sessions_.size() && fits(sessions_[latest_])) {
    return sessions_[latest_].session.get();
  }
  const auto found = std::find_if(sessions_.begin(), sessions_.end(), fits);
  if (found == sessions_.end()) return nullptr;
  latest_ = static_cast<std::size_t>(found - sessions_.begin());
  return found->session.get();
}

Guard::Verdict Guard::judge(const Header& header, std::span<const std::byte> datagram,
                            const Endpoint& source) {
  const bool names_instance = proto::instance_of(header, datagram) != 0;
  if ((header.flags & proto::kFlagAuthenticated) == 0) {
    return names_instance && is_about_key(header, datagram) ? Verdict::kHint : Verdict::kRejected;
  }
  if (names_instance) {
    return judge_handshake(header, datagram, source) ? Verdict::kAdmitted : Verdict::kRejected;
  }
  // All ranks take what is sealed with the session's key; what was for another is not for this one.
  const std::uint16_t addressee = header.rank.value();
  if (addressee != config_.rank && addressee != proto::kAggregatorRank) return Verdict::kRejected;
  Session* session = find_session(source, header.epoch.value());
  if (session == nullptr) return Verdict::kRejected;
  if (proto::aborts_unknown(header, datagram)) {
    return judge_unknown(datagram, *session) ? Verdict::kAdmitted : Verdict::kRejected;
  }
  return session->opener.open(datagram) == proto::Opener::Verdict::kGood ? Verdict::kAdmitted
                                                                         : Verdict::kRejected;
}

/// The shard has not the session's keys, if it ever had; it answers a packet that was sent lately.
bool Guard::judge_unknown(std::span<const std::byte> datagram, const Session& session) {
  return session.recent.has(proto::read_proof(datagram).worker) &&
         hmac_.proves(key_.handshake(proto::Side::kAggregator), datagram);
}

bool Guard::judge_handshake(const Header& header, std::span<const std::byte> datagram,
                            const Endpoint& source) {
  const proto::Proof proof = proto::read_proof(datagram);
  const auto party = std::find_if(parties_.begin(), parties_.end(), [&](const Party& candidate) {
    return candidate.endpoint == source && candidate.nonce == proof.worker;
  });
  if (party == parties_.end()) return false;
  const auto answer = party->answers.candidate(proto::read_trailer(datagram).counter.value());
  if (!answer) return false;
  if (!hmac_.proves(key_.handshake(proto::Side::kAggregator), datagram)) return false;
  party->answers.accept(*answer);
  if (header.type == Type::kChallenge) party->challenge = proof.aggregator;
  if (header.type == Type::kWelcome) {
    adopt(source, header.epoch.value(), proof.worker, proof.aggregator);
  }
  return true;
}

/// A session that is known keeps its keys, so that counters neither repeat nor are forgotten.
void Guard::adopt(const Endpoint& endpoint, std::uint32_t epoch, const Nonce& worker,
                  const Nonce& nonce) {
  proto::Sealer sealer(key_.worker_session(epoch, nonce, config_.rank, worker));
  if (Session* known = find_session(endpoint, epoch)) {
    if (known->worker == worker && known->nonce == nonce) return;
    if (known->nonce != nonce) known->opener = proto::Opener(key_.aggregator_session(epoch, nonce));
    known->worker = worker;
    known->nonce = nonce;
    known->sealer = std::move(sealer);
    return;
  }
  sessions_.push_back({endpoint, std::make_unique<Session>(Session{
                                     epoch, worker, nonce, std::move(sealer),
                                     proto::Opener(key_.aggregator_session(epoch, nonce))})});
}

std::size_t Guard::seal(std::span<Outgoing> out) {
  if (copies_.size() < out.size() * room_) copies_.resize(out.size() * room_);
  std::size_t sealed = 0;
  for (const Outgoing& datagram : out) {
    const std::span<std::byte> copy = std::span(copies_).subspan(sealed * room_, room_);
    const std::size_t size = seal(datagram, copy);
    if (size != 0) {
      out[sealed++] = {
          .to = datagram.to, .datagram = copy.first(size), .segmentable = datagram.segmentable};
    }
  }
  return sealed;
}

/// The sealed copy's length, 0 when no keys fit.
std::size_t Guard::seal(const Outgoing& datagram, std::span<std::byte> copy) {
  const std::size_t size = datagram.datagram.size();
  Header header = proto::read_header(datagram.datagram);
  const bool joins = header.type == Type::kJoin;
  const bool proves = joins || header.type == Type::kHello;
  // HELLO and JOIN are padded, and keep their length.
  const std::size_t rest = proves ? size - sizeof(proto::Trailer) : size;
  if (rest + sizeof(proto::Trailer) > copy.size()) return 0;
  std::memcpy(copy.data(), datagram.datagram.data(), rest);
  header.flags |= proto::kFlagAuthenticated;
  std::memcpy(copy.data(), &header, sizeof(header));
  const std::span<const std::byte> part = copy.first(rest);
  proto::Trailer trailer;
  if (proves) {
    const std::uint16_t place =
        joins ? proto::read_body<proto::JoinBody>(datagram.datagram).shard.value() : kAsked;
    const Party& party = find_party(datagram.to, place);
    const proto::Proof proof{.worker = party.nonce, .aggregator = party.challenge};
    std::memcpy(copy.data() + rest - sizeof(proof), &proof, sizeof(proof));
    trailer.counter = proto::Be32{++handshakes_};
    trailer.mac = hmac_.handshake(key_.handshake(proto::Side::kWorker), {&part, 1}, handshakes_);
  } else {
    Session* session = find_session(datagram.to, header.epoch.value());
    if (session == nullptr) return 0;
    trailer = session->sealer.seal({&part, 1});
    session->recent.add(trailer.mac);
  }
  std::memcpy(copy.data() + rest, &trailer, sizeof(trailer));
  return rest + sizeof(trailer);
}

}  // namespace natagg::worker
