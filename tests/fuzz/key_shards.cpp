// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "key_shards.hpp"

#include <algorithm>

#include "input.hpp"

namespace natagg::fuzz {

using proto::Endpoint;
using proto::Header;
using proto::Nonce;
using proto::Opener;
using proto::Type;

namespace {

template <typename T>
void append(Datagram& datagram, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  datagram.insert(datagram.end(), bytes.begin(), bytes.end());
}

}  // namespace

void KeyShards::hear(std::span<const std::byte> datagram, const Endpoint& shard) {
  const Header header = proto::read_header(datagram);
  require((header.flags & proto::kFlagAuthenticated) != 0, "a worker that has a key seals all");
  const proto::Trailer trailer = proto::read_trailer(datagram);
  if (header.type == Type::kHello || header.type == Type::kJoin) {
    require(hmac_.proves(key_.handshake(proto::Side::kWorker), datagram),
            "a worker proves its key");
    require(trailer.counter.value() > heard_, "no two questions have the same counter");
    heard_ = trailer.counter.value();
    auto& questions = header.type == Type::kHello ? hellos_ : joins_;
    questions[shard] = {proto::read_proof(datagram).worker, trailer.counter};
    return;
  }
  latest_[shard] = trailer;
  const SessionName name{shard, header.epoch.value()};
  // Of all keys that a WELCOME has offered, exactly one fits, and what it seals is new.
  const auto opened = std::count_if(openers_.begin(), openers_.end(), [&](auto& entry) {
    return entry.first.first == name && entry.second.open(datagram) == Opener::Verdict::kGood;
  });
  require(opened == 1, "a worker seals with a key of the session, and never twice the same");
}

Nonce KeyShards::nonce_of(const SessionName& name) {
  Nonce nonce{};
  const proto::Be32 epoch{name.second};
  const proto::Be16 port{name.first.port};
  std::memcpy(nonce.data(), &epoch, sizeof(epoch));
  std::memcpy(nonce.data() + sizeof(epoch), &port, sizeof(port));
  return nonce;
}

proto::Sealer& KeyShards::sealer(const SessionName& name) {
  const auto found = sealers_.find(name);
  if (found != sealers_.end()) return found->second;
  return sealers_.try_emplace(name, key_.aggregator_session(name.second, nonce_of(name)))
      .first->second;
}

/// Remembers the keys that a WELCOME gives.
proto::Proof KeyShards::prove(const Header& header, const SessionName& name) {
  const auto& questions = header.type == Type::kOffer ? hellos_ : joins_;
  const auto asked = questions.find(name.first);
  proto::Proof proof{};
  if (asked != questions.end()) proof.worker = asked->second.worker;
  if (header.type == Type::kAbort) proof.worker = latest_[name.first].mac;
  if (header.type == Type::kChallenge) proof.aggregator.fill(7);
  if (header.type == Type::kWelcome) {
    proof.aggregator = nonce_of(name);
    openers_.try_emplace({name, proof.worker},
                         key_.worker_session(name.second, proof.aggregator, rank_, proof.worker));
  }
  return proof;
}

bool KeyShards::seal(Datagram& datagram, const Endpoint& shard) {
  if (datagram.size() < sizeof(Header)) return false;
  Datagram sealed = datagram;
  Header header = proto::read_header(sealed);
  header.flags |= proto::kFlagAuthenticated;
  std::memcpy(sealed.data(), &header, sizeof(header));
  const SessionName name{shard, header.epoch.value()};
  Datagram body = sealed;  // of which no field is beyond the end
  body.resize(std::max<std::size_t>(body.size(), 256));
  const bool proves = proto::has_proof(header, body);
  proto::Trailer trailer;
  if (proves) {
    const std::size_t tail = sizeof(proto::Proof) + sizeof(trailer);
    // Proof and trailer take the place of padding.
    const std::size_t least = sizeof(Header) + sizeof(proto::OfferBody) + tail;
    if (header.type == Type::kOffer && sealed.size() >= least) sealed.resize(sealed.size() - tail);
    append(sealed, prove(header, name));
    const auto& questions = header.type == Type::kOffer ? hellos_ : joins_;
    const auto asked = questions.find(shard);
    if (asked != questions.end()) trailer.counter = asked->second.counter;
    if (header.type == Type::kAbort) trailer.counter = latest_[shard].counter;
    const std::span<const std::byte> part = sealed;
    trailer.mac = hmac_.handshake(key_.handshake(proto::Side::kAggregator), {&part, 1},
                                  trailer.counter.value());
  } else {
    const std::span<const std::byte> part = sealed;
    trailer = sealer(name).seal({&part, 1});
  }
  append(sealed, trailer);
  if (proto::validate(sealed, proto::Keys::kSome) != proto::Reject::kNone) return false;
  datagram = std::move(sealed);
  ledger_.add(datagram, shard);
  return true;
}

}  // namespace natagg::fuzz
