// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/session.hpp"

#include <algorithm>
#include <utility>

#include "proto/operation.hpp"
#include "proto/serial.hpp"
#include "proto/splitmix.hpp"

namespace natagg::aggregator {
namespace {

// Longer than between two JOINs of a rank, though one be lost.
constexpr Time kContest = 200'000'000;

// A JOIN that was under way when its sender ended arrives in less.
constexpr Time kStray = 20'000'000;

}  // namespace

proto::AbortBody abort_body(proto::AbortReason reason, std::uint16_t rank) {
  proto::AbortBody body{};
  body.reason = reason;
  body.rank = proto::Be16{rank};
  body.other_rank = proto::Be16{proto::kAggregatorRank};
  return body;
}

Session::Session(std::uint32_t epoch, const Terms& terms, const proto::Endpoint& group,
                 std::unique_ptr<SessionGuard> guard)
    : epoch_(epoch), guard_(std::move(guard)), terms_(terms), group_(group), members_(terms.world) {
  everybody_.reserve(terms.world);
  hearing_group_.reserve(1);
  deaf_.reserve(terms.world);
}

std::optional<Refusal> Session::compare(const Terms& terms) const {
  using enum proto::RefuseReason;
  if (terms.seed != terms_.seed) return Refusal{kSeed, terms.seed, terms_.seed};
  if (terms.rounding != terms_.rounding) {
    return Refusal{kRounding, terms.rounding, terms_.rounding};
  }
  if (terms.shift != terms_.shift) {
    return Refusal{kShift, static_cast<std::uint64_t>(terms.shift),
                   static_cast<std::uint64_t>(terms_.shift)};
  }
  if (terms.stragglers != terms_.stragglers) {
    return Refusal{kStragglers, terms.stragglers, terms_.stragglers};
  }
  if (terms.quorum != terms_.quorum) return Refusal{kQuorum, terms.quorum, terms_.quorum};
  if (terms.shards != terms_.shards) return Refusal{kPool, terms.shards, terms_.shards};
  if (terms.shard != terms_.shard) return Refusal{kPool, terms.shard, terms_.shard};
  if ((terms_.values_pinned && terms.values < terms_.values) ||
      (terms.values_pinned && terms.values > terms_.values)) {
    return Refusal{kValues, terms.values, terms_.values};
  }
  return std::nullopt;
}

std::optional<Refusal> Session::join(std::uint16_t rank, std::uint64_t instance, const Terms& terms,
                                     const Claim& claim, const Peer& peer, bool hears_multicast,
                                     Time now, Time timeout) {
  // The rank is one of the world that this JOIN names.
  if (terms.world != terms_.world) {
    return contest({proto::RefuseReason::kWorld, terms.world, terms_.world}, now);
  }
  Member& m = members_[rank];
  if (m.joined && m.instance != instance && now - m.last_heard < timeout) {
    return Refusal{proto::RefuseReason::kRankTaken, rank, m.peer.endpoint.address};
  }
  if (const auto refusal = compare(terms)) return contest(*refusal, now);
  for (const Member& other : members_) {
    if (&other != &m && other.joined && !other.claim.fits(claim)) {
      return Refusal{proto::RefuseReason::kJobRunning, terms.world, terms_.world};
    }
  }
  terms_.values = std::min(terms.values, terms_.values);
  terms_.values_pinned |= terms.values_pinned;
  terms_.window = std::min(terms.window, terms_.window);
  if (!m.joined) {
    ++joined_;
    if (full()) full_since_ = now;
  }
  hears_multicast |= m.hears_multicast && m.instance == instance;
  moves_ = std::max(moves_, claim.moves);
  m = {.peer = peer,
       .claim = claim,
       .instance = instance,
       .last_heard = now,
       .joined = true,
       .gone = false,
       .why_gone = {},
       .hears_multicast = hears_multicast,
       .takes_part = false};
  return std::nullopt;
}

Refusal Session::contest(const Refusal& difference, Time now) {
  if (!contested_since_ || now - contested_ > kContest) contested_since_ = now;
  contested_ = now;
  const bool alive = std::any_of(members_.begin(), members_.end(), [this](const Member& m) {
    return m.joined && m.last_heard - *contested_since_ > kStray;
  });
  if (alive) return difference;
  return {proto::RefuseReason::kJobRunning, terms_.world, terms_.world};
}

void Session::evict_silent(Time now, Time timeout) {
  for (Member& m : members_) {
    if (m.joined && now - m.last_heard >= timeout) withdraw(m);
  }
}

void Session::withdraw(Member& m) {
  m = {};
  --joined_;
}

void Session::expel_claimants(std::vector<Peer>& expelled) {
  for (Member& m : members_) {
    if (!m.joined || m.claim.members == 0) continue;
    expelled.push_back(m.peer);
    withdraw(m);
  }
}

bool Session::multicast_settled() const {
  return group_.address == 0 || std::all_of(members_.begin(), members_.end(),
                                            [](const Member& m) { return m.hears_multicast; });
}

void Session::make_ready(std::uint32_t first_sequence, const Kernels& kernels) {
  const proto::RoundingKey key{.seed = terms_.seed,
                               .operation = 0,
                               .who = proto::kAggregatorRank,
                               .mode = static_cast<proto::Rounding>(terms_.rounding)};
  list_peers();
  first_sequence_ = resume_point(first_sequence);
  const bool partial = terms_.stragglers != 0;
  slots_.emplace(terms_.window, terms_.values, terms_.world, first_sequence_, key, kernels,
                 partial);
  losses_.emplace(terms_.world, first_sequence_);
  if (!partial) return;
  known_chunks_ = count_known_chunks();
  const Time deadline = Time{terms_.stragglers} * 1'000'000;
  watch_.emplace(terms_.window, deadline);
  backlog_.emplace(terms_.window, terms_.values, terms_.world, deadline);
}

/// Where no rank has any result, `first_sequence` serves all, and those of a new job know no other.
std::uint32_t Session::resume_point(std::uint32_t first_sequence) const {
  if (std::all_of(members_.begin(), members_.end(),
                  [](const Member& m) { return m.claim.untouched; })) {
    return first_sequence;
  }
  std::uint32_t least = members_.front().claim.resume;
  for (const Member& m : members_) {
    if (proto::serial_less(m.claim.resume, least)) least = m.claim.resume;
  }
  return least;
}

std::uint32_t Session::count_known_chunks() const {
  std::uint32_t most = 0;
  for (const Member& m : members_) {
    if (m.claim.untouched) continue;
    most = std::max(most, m.claim.resume - first_sequence_ + m.claim.held);
  }
  return most;
}

std::size_t Session::datagram_size() const {
  if (terms_.stragglers == 0) return proto::datagram_size(terms_.values);
  return proto::partial_datagram_size(terms_.values, terms_.world,
                                      guard_ ? proto::Keys::kSome : proto::Keys::kNone);
}

void Session::opened(std::uint32_t sequence) {
  const std::uint32_t latest = known_chunks_ + proto::kKeptPartialWindows * terms_.window;
  if (sequence - first_sequence_ >= latest) known_chunks_ = 0;
}

std::uint64_t Session::claimed() const {
  for (const Member& m : members_) {
    if (m.joined && m.claim.members != 0) return m.claim.members;
  }
  return 0;
}

Member* Session::member(std::uint16_t rank, const Peer& source) {
  Member& m = members_[rank];
  return m.joined && m.peer.endpoint == source.endpoint ? &m : nullptr;
}

void Session::heard(Member& m, const Peer& source, Time now) {
  m.last_heard = now;
  if (m.peer.link == source.link && m.peer.interface == source.interface) return;
  m.peer = source;
  list_peers();
}

bool Session::missed_result(std::uint16_t rank) {
  // With one off for each contribution, this grows while more than every other result is missed.
  // A whole window that is lost at once is an accident, and not enough.
  constexpr std::uint32_t kWeight = 2;
  constexpr std::uint32_t kMargin = 16;
  Member& m = members_[rank];
  if (!m.hears_multicast) return false;
  m.misses += kWeight;
  if (m.misses < kWeight * terms_.window + kMargin) return false;
  m.hears_multicast = false;
  list_peers();
  return true;
}

void Session::contributed(std::uint16_t rank) {
  Member& m = members_[rank];
  if (m.misses > 0) --m.misses;
}

bool Session::all_take_part() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& m) { return m.takes_part || m.gone; });
}

void Session::depart(std::uint16_t rank, const proto::AbortBody& cause) {
  mark_gone(rank, cause);
  list_peers();
}

void Session::mark_gone(std::uint16_t rank, const proto::AbortBody& cause) {
  members_[rank].gone = true;
  members_[rank].why_gone = cause.reason;
  --joined_;
  if (!departed_) departed_ = cause;
  if (!backlog_) return;
  slots_->excuse(rank);
  backlog_->excuse(rank);
}

bool Session::may_be_partial(std::uint32_t sequence, std::uint64_t fingerprint) const {
  return watch_ && proto::may_be_partial(proto::from_fingerprint(fingerprint).reduction) &&
         !may_be_known(sequence);
}

bool Session::lacks(std::uint16_t rank) const {
  return slots_->any_open_without(rank, [this](std::uint32_t sequence, const Chunk& chunk) {
    return !goes_on(sequence, chunk.fingerprint);
  });
}

Session::Silent Session::depart_silent(Time now, Time timeout) {
  Silent silent;
  for (std::uint16_t rank = 0; rank < terms_.world; ++rank) {
    const Member& m = members_[rank];
    if (m.gone || now - m.last_heard < timeout) continue;
    mark_gone(rank, abort_body(proto::AbortReason::kMemberSilent, rank));
    ++silent.count;
    if (!silent.awaited && lacks(rank)) silent.awaited = rank;
  }
  if (silent.count != 0) list_peers();
  return silent;
}

void Session::forgive(Time gap, Time now) {
  for (Member& m : members_) m.last_heard = std::min(m.last_heard + gap, now);
  if (watch_) watch_->forgive(gap);
  if (backlog_) backlog_->forgive(gap);
}

void Session::abort(const proto::AbortBody& body) {
  if (!aborted_) aborted_ = body;
}

std::uint16_t Session::missing() const {
  const auto absent = std::find_if(members_.begin(), members_.end(),
                                   [](const Member& m) { return !m.joined || m.gone; });
  if (absent == members_.end()) return proto::kAggregatorRank;
  return static_cast<std::uint16_t>(absent - members_.begin());
}

std::uint64_t Session::members_digest() const {
  std::uint64_t digest = 0;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].joined) digest += proto::mix(members_[rank].instance + proto::mix(rank + 1));
  }
  return digest;
}

void Session::list_peers() {
  everybody_.clear();
  deaf_.clear();
  for (const Member& m : members_) {
    if (!m.joined || m.gone) continue;
    everybody_.push_back(m.peer);
    if (!m.hears_multicast) deaf_.push_back(m.peer);
  }
  hearing_group_.clear();
  if (deaf_.size() < everybody_.size()) hearing_group_.push_back({.endpoint = group_, .link = 0});
}

}  // namespace natagg::aggregator
