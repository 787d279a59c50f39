// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "shard_witness.hpp"

#include <algorithm>

#include "datagrams.hpp"
#include "input.hpp"
#include "proto/operation.hpp"
#include "support/packets.hpp"

namespace natagg::fuzz {

using aggregator::Counter;
using aggregator::Outgoing;
using aggregator::Peer;
using aggregator::Time;
using proto::Header;
using proto::Reject;
using proto::Type;

namespace {

/// What a DATA packet can come to; each packet to one of these.
constexpr Counter kOutcomes[] = {
    Counter::kUnexpectedType, Counter::kUnknownSession,  Counter::kStaleEpoch,
    Counter::kBadRank,        Counter::kWrongSource,     Counter::kBadSlot,
    Counter::kBadTerms,       Counter::kMalformedByte,   Counter::kStaleSequence,
    Counter::kEarlySequence,  Counter::kDuplicateOpen,   Counter::kMismatch,
    Counter::kDeparted,       Counter::kEnded,           Counter::kContributions,
    Counter::kCachedResults,  Counter::kHeldBack,        Counter::kKnownResults,
    Counter::kWrongKey,       Counter::kBadMac,          Counter::kReplayed,
    Counter::kChallenges,     Counter::kUnauthenticated, Counter::kTooShort,
};

/// What becomes of a packet that the job's key does not vouch for. A shard that does not know the
/// session has no key to check it with.
constexpr Counter kNotVouchedFor[] = {
    Counter::kWrongKey,       Counter::kBadMac,          Counter::kReplayed,
    Counter::kChallenges,     Counter::kUnauthenticated, Counter::kTooShort,
    Counter::kUnknownSession, Counter::kUnexpectedType,
};

/// How long a recorded JOIN may be of use (docs/security.md).
constexpr Time kChallengeLife = 4'000'000'000;

/// The longest answer to anything that need not be as long: ABORT.
constexpr std::size_t kLongestAnswer = sizeof(Header) + sizeof(proto::AbortBody);
constexpr std::size_t kLongestTail = sizeof(proto::Proof) + sizeof(proto::Trailer);

constexpr std::uint32_t kFirstAddress = 0x0A00'0002;

std::size_t length(const Outgoing& outgoing) {
  return outgoing.head.size() + outgoing.body.size() + outgoing.padding + outgoing.tail.size();
}

}  // namespace

proto::Endpoint endpoint_of(std::uint16_t rank) {
  return {kFirstAddress + rank, 50000};
}

std::uint16_t rank_of(const proto::Endpoint& endpoint) {
  return static_cast<std::uint16_t>(endpoint.address - kFirstAddress);
}

ShardWitness::ShardWitness(const aggregator::ShardConfig& config)
    : config_(config), shard_(config), memory_(16'384) {}

void ShardWitness::receive(std::span<const std::byte> datagram, const Peer& source, Time now) {
  const auto held = memory_.hold(datagram);
  const auto keys = config_.keys ? proto::Keys::kSome : proto::Keys::kNone;
  const bool well_formed = proto::validate(held, keys) == Reject::kNone;
  const Header header = well_formed ? proto::read_header(held) : Header{};
  const std::pair name{header.job.value(), source.endpoint};
  const bool stranger = !joined_.contains(name);
  before_ = shard_.counters();
  usage_before_ = shard_.usage();
  const auto sent = shard_.receive(held, source, now);
  const auto grew = [&](Counter counter) { return shard_.counters()[counter] != before_[counter]; };
  if (grew(Counter::kJoins)) joined_.insert(name);
  if (grew(Counter::kContributions)) {
    const ChunkName chunk{header.job.value(), header.epoch.value(), header.sequence.value()};
    require(chunks_[chunk].contributed.insert(header.rank.value()).second,
            "a rank contributes to a chunk once");
  }
  for (const Outgoing& outgoing : sent) look_at(outgoing);
  check_counted(header.type, well_formed);
  check_bounds(sent);
  const bool vouched =
      !well_formed || !has_key(name.first) || vouched_for(header, held, source, sent, now);
  if ((stranger && !grew(Counter::kJoins)) || !vouched) check_stranger(sent, source, held.size());
}

/// In a job that has a key: whether the shard took the packet as a member's, which it may only if
/// it is one.
bool ShardWitness::vouched_for(const Header& header, std::span<const std::byte> datagram,
                               const Peer& source, std::span<const Outgoing> sent, Time now) {
  const auto grew = [&](Counter counter) { return shard_.counters()[counter] != before_[counter]; };
  if (std::any_of(std::begin(kNotVouchedFor), std::end(kNotVouchedFor), grew)) return false;
  Sealed* sealed = holders_.find(datagram);
  require(sealed != nullptr, "only what a member has sealed is taken");
  if (header.type == Type::kHello) return true;  // the same answer each time
  if (header.type == Type::kJoin) {
    require(sealed->by == source.endpoint, "a challenge is of use to its addressee alone");
    if (grew(Counter::kJoins)) take_join(*sealed, sent, now);
    return true;
  }
  require(!sealed->taken, "nothing is taken twice");
  sealed->taken = true;
  return true;
}

void ShardWitness::take_join(Sealed& sealed, std::span<const Outgoing> sent, Time now) {
  if (!sealed.taken) sealed.taken_at = now;
  sealed.taken = true;
  require(!sent.empty(), "a JOIN that is taken is answered");
  require(now - sealed.taken_at <= kChallengeLife, "a recorded JOIN is soon of no use");
  // The answer names the session, also where it ends at once.
  const std::uint32_t session = proto::read_header(sent.front().head).epoch.value();
  require(sealed.in.insert(session).second, "a session takes a JOIN once");
}

void ShardWitness::check_counted(Type type, bool well_formed) {
  const auto& values = shard_.counters().values();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < proto::kRejects; ++i) sum += values[i] - before_.values()[i];
  // Where jobs have keys, one that is well formed may be unauthenticated, or too short to answer.
  require(sum == 1 || (sum == 2 && well_formed && config_.keys),
          "each packet is accepted or rejected by name, once");
  if (!well_formed) return;
  std::uint64_t now = 0;
  std::uint64_t before = 0;
  for (const Counter counter : kOutcomes) {
    now += shard_.counters()[counter];
    before += before_[counter];
  }
  const bool worker_type = type == Type::kData || type == Type::kHello || type == Type::kJoin ||
                           type == Type::kLeave || type == Type::kHeartbeat;
  if (type == Type::kData || !worker_type) {
    require(now == before + 1, "a DATA packet has one outcome");
  } else {
    require(now <= before + 1, "a packet has at most one outcome");
  }
}

void ShardWitness::check_stranger(std::span<const Outgoing> sent, const Peer& source,
                                  std::size_t size) const {
  require(sent.size() <= 1, "a stranger is answered with one datagram");
  for (const Outgoing& outgoing : sent) {
    require(outgoing.to.size() == 1 && outgoing.to[0].endpoint == source.endpoint,
            "a stranger alone is answered");
    const std::size_t longest = kLongestAnswer + (config_.keys ? kLongestTail : 0);
    require(length(outgoing) <= std::max(size, longest), "an answer does not amplify");
  }
  for (const Counter counter :
       {Counter::kContributions, Counter::kResults, Counter::kAborts, Counter::kLeaves,
        Counter::kCachedResults, Counter::kSessions, Counter::kJoins, Counter::kSilentMembers}) {
    require(shard_.counters()[counter] == before_[counter], "a stranger changes nothing");
  }
  const auto usage = shard_.usage();
  require(usage.jobs == usage_before_.jobs && usage.open_slots == usage_before_.open_slots &&
              usage.ready_sessions == usage_before_.ready_sessions,
          "nothing is kept for a stranger");
}

void ShardWitness::check_bounds(std::span<const Outgoing> sent) const {
  std::size_t datagrams = 0;
  for (const Outgoing& outgoing : sent) datagrams += outgoing.to.size();
  require(datagrams <= config_.max_workers + 1U, "a packet makes one datagram a member at most");
  const auto usage = shard_.usage();
  require(usage.jobs <= config_.max_jobs, "jobs are bounded");
  require(usage.ready_sessions <= usage.jobs, "a job has one session that runs");
  require(usage.open_slots <= usage.ready_sessions * config_.max_window, "slots are bounded");
}

void ShardWitness::look_at(const Outgoing& outgoing) {
  const auto packet = test::wire(outgoing);
  const auto keys = config_.keys ? proto::Keys::kSome : proto::Keys::kNone;
  require(proto::validate(packet, keys) == Reject::kNone, "what is sent is well formed");
  const Header header = proto::read_header(packet);
  const std::uint32_t job = header.job.value();
  if (has_key(job)) look_at_seal(header, packet, outgoing.to);
  if (has_key(job) && outgoing.to.empty()) return;  // what cannot be sealed is not sent
  require(!outgoing.to.empty(), "what is sent is for somebody");
  switch (header.type) {
    case Type::kWelcome: {
      const auto body = proto::read_body<proto::WelcomeBody>(packet);
      require(header.epoch.value() != 0, "an epoch is not 0");
      require(
          body.window.value() <= config_.max_window && body.values.value() <= config_.max_values,
          "terms are within the configuration");
      epochs_[job] = header.epoch.value();
      if (body.state == proto::SessionState::kReady && body.instance.value() == 0) {
        worlds_[{job, header.epoch.value()}] = body.joined.value();
        members_[job] = body.members.value();
      }
      return;
    }
    case Type::kResult: return look_at_result(header, proto::payload(packet));
    case Type::kPartial: return look_at_partial(header, packet);
    case Type::kOffer:
    case Type::kRefuse:
    case Type::kLeave:
    case Type::kHeartbeat:
    case Type::kProbe:
    case Type::kPending:
    case Type::kNack:
    case Type::kChallenge:
    case Type::kAbort:
    case Type::kMove: return;
    default: require(false, "an aggregator does not send what workers send");
  }
}

void ShardWitness::look_at_seal(const Header& header, std::span<const std::byte> packet,
                                std::span<const Peer> to) {
  const bool sealed = (header.flags & proto::kFlagAuthenticated) != 0;
  require(sealed || to.empty() || header.type == Type::kRefuse,
          "what is sent to a job that has a key is sealed");
  for (const Peer& peer : to) {
    if (sealed) holders_.receive(packet, rank_of(peer.endpoint));
  }
}

void ShardWitness::look_at_result(const Header& header, std::span<const std::uint8_t> bytes) {
  const std::uint32_t epoch = header.epoch.value();
  ChunkHistory& chunk = chunks_[{header.job.value(), epoch, header.sequence.value()}];
  require(chunk.contributed.size() == worlds_[{header.job.value(), epoch}],
          "a result has a contribution of every rank");
  if (chunk.result.empty()) chunk.result.assign(bytes.begin(), bytes.end());
  require(std::equal(bytes.begin(), bytes.end(), chunk.result.begin(), chunk.result.end()),
          "a result is the same bytes each time");
}

void ShardWitness::look_at_partial(const Header& header, std::span<const std::byte> packet) {
  const std::uint32_t epoch = header.epoch.value();
  const auto values = proto::payload(packet);
  const auto ranks = proto::rank_set(packet);
  require(proto::count_ranks(ranks, worlds_[{header.job.value(), epoch}]) != 0,
          "a partial result is of ranks of its world");
  require(proto::may_be_partial(proto::from_fingerprint(header.fingerprint.value()).reduction),
          "only operations that take it get a partial result");
  ChunkHistory& chunk = chunks_[{header.job.value(), epoch, header.sequence.value()}];
  std::vector<std::uint8_t> result(values.begin(), values.end());
  result.insert(result.end(), ranks.begin(), ranks.end());
  if (chunk.result.empty()) chunk.result = result;
  require(chunk.result == result, "a partial result is the same bytes each time");
}

void ShardWitness::tick(Time now) {
  before_ = shard_.counters();
  // A probe, a session that becomes ready or ends: a few a job. And all slots may be overdue, and
  // ranks left behind.
  const std::size_t most = 4U + config_.max_window + config_.max_workers;
  for (std::size_t left = most * config_.max_jobs; left > 0; --left) {
    const auto sent = shard_.tick(now);
    if (sent.empty()) return check_bounds(sent);
    for (const Outgoing& outgoing : sent) look_at(outgoing);
  }
  require(false, "tick() comes to an end");
}

void ShardWitness::expect_all_forgotten(Time now) {
  // Forming may take its time-out twice: one that becomes ready has members to fall silent. In
  // steps that are not taken for the shard's own pause.
  const Time end =
      now + 3 * (config_.forming_timeout + config_.probe_wait + config_.member_timeout);
  while (now < end) tick(now += 100'000'000);
  const auto usage = shard_.usage();
  require(usage.jobs == 0 && usage.ready_sessions == 0 && usage.open_slots == 0,
          "without members nothing is kept");
}

bool ShardWitness::has_key(std::uint32_t job) const {
  return config_.keys && config_.keys->contains(job);
}

std::uint64_t ShardWitness::members(std::uint32_t job) const {
  const auto known = members_.find(job);
  return known == members_.end() ? 1 : known->second;
}

std::uint32_t ShardWitness::epoch(std::uint32_t job) const {
  const auto known = epochs_.find(job);
  return known == epochs_.end() ? 0 : known->second;
}

}  // namespace natagg::fuzz
