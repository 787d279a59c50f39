// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/registry.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include "aggregator/core/join_terms.hpp"
#include "aggregator/core/leave_cause.hpp"

namespace natagg::aggregator {

using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Header;
using proto::RefuseReason;
using proto::Type;

namespace {

// Far more often than a probe is lost, yet not at every call of tick(), which is called until it
// has nothing more to send.
constexpr Time kProbeInterval = 5'000'000;

// Between two calls of tick(), which is called every 10 ms or so.
constexpr Time kPause = 200'000'000;

// From the start, for the ranks of jobs that ran here before: a second until those with a key, who
// believe nobody that has forgotten it, take the silence for a loss, and the rest for joining.
constexpr Time kComeBack = 1'500'000'000;

// Often enough that a lost MOVE costs little of the time in which all must have come.
constexpr Time kCallInterval = 20'000'000;

proto::WelcomeBody welcome_body(const Session& session, proto::SessionState state,
                                std::uint64_t instance) {
  return {.instance = Be64{instance},
          .members = Be64{session.members_digest()},
          .first_sequence = Be32{session.first_sequence()},
          .multicast_address = Be32{session.group().address},
          .multicast_port = Be16{session.group().port},
          .values = Be16{session.terms().values},
          .window = Be16{session.terms().window},
          .joined = Be16{session.joined()},
          .missing = Be16{session.missing()},
          .shard = Be16{session.terms().shard},
          .moves = Be16{session.moves()},
          .state = state,
          .reserved = 0};
}

Joiner joiner_of(const Header& header, std::uint64_t instance,
                 std::span<const std::byte> datagram) {
  Joiner joiner{.rank = header.rank.value(), .instance = instance};
  if ((header.flags & proto::kFlagAuthenticated) == 0) return joiner;
  joiner.nonce = proto::read_proof(datagram).worker;
  joiner.counter = proto::read_trailer(datagram).counter.value();
  return joiner;
}

bool replays(const Job* job, const Joiner& joiner) {
  const auto seen = [&](const std::optional<Session>& session) {
    return session && session->guard() != nullptr && session->guard()->replays(joiner);
  };
  return job != nullptr && (seen(job->running) || seen(job->forming));
}

/// False when there is no memory for the member's keys.
bool admit(const Session& session, const Joiner& joiner) {
  if (session.guard() == nullptr) return true;
  try {
    session.guard()->admit(joiner);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace

Registry::Registry(const ShardConfig& config, const Kernels& kernels, Guard& guard,
                   Counters& counters, Outbox& outbox)
    : config_(config),
      kernels_(kernels),
      guard_(guard),
      counters_(counters),
      outbox_(outbox),
      refusing_(counters, outbox),
      jobs_(config.max_jobs),
      next_epoch_(config.first_epoch) {}

void Registry::tick(Time now) {
  failed_.reset();
  forgive_pause(now);
  for (Job& job : jobs_.all()) {
    if (job.forming) tick_forming(job, now);
    // What is to be sent may refer to the job's members: nothing may change them before it is.
    if (outbox_.empty() && job.running) tick_running(job, now);
    if (!outbox_.empty()) return;
  }
  jobs_.remove_empty();
}

/// A process that was stopped for a while has heard nobody in that time, which says nothing about
/// them.
void Registry::forgive_pause(Time now) {
  const Time gap = now - last_tick_.value_or(now);
  last_tick_ = now;
  if (!first_tick_) first_tick_ = now;
  if (gap < kPause) return;
  *first_tick_ += gap;
  for (Job& job : jobs_.all()) {
    if (job.running) job.running->forgive(gap, now);
    if (job.forming) job.forming->forgive(gap, now);
  }
}

Registry::Found Registry::find_member(const Header& header, const Peer& source, Time now) {
  Job* job = nullptr;
  bool known = false;
  for (Job& candidate : jobs_.all()) {
    if (candidate.id != header.job.value() || !candidate.running) continue;
    known = true;
    if (candidate.running->epoch() == header.epoch.value()) job = &candidate;
  }
  if (job == nullptr) {
    counters_.add(known ? Counter::kStaleEpoch : Counter::kUnknownSession);
    send_abort(
        header, source,
        abort_body(known ? proto::AbortReason::kSuperseded : proto::AbortReason::kUnknownSession,
                   proto::kAggregatorRank));
    return {};
  }
  Session& session = *job->running;
  const std::uint16_t rank = header.rank.value();
  if (rank >= session.terms().world) {
    counters_.add(Counter::kBadRank);
    return {};
  }
  Member* member = session.member(rank, source);
  if (member == nullptr) {
    counters_.add(Counter::kWrongSource);
    return {};
  }
  session.heard(*member, source, now);
  // The others may go on without it.
  if (member->gone && session.watch() != nullptr && !session.aborted()) {
    counters_.add(Counter::kDeparted);
    send_abort(header, source, abort_body(member->why_gone, rank));
    return {};
  }
  member->takes_part = true;
  return {job, &session, member};
}

void Registry::on_heartbeat(const Header& header, const Peer& source, Time now) {
  const auto [job, session, member] = find_member(header, source, now);
  if (member == nullptr) return;
  if (session->aborted()) {
    counters_.add(Counter::kEnded);
    return send_abort(header, source, *session->aborted());
  }
  outbox_.add(source, answer(header, Type::kHeartbeat));
}

void Registry::on_leave(const Header& header, std::span<const std::byte> datagram,
                        const Peer& source) {
  const auto body = proto::read_body<proto::LeaveBody>(datagram);
  // Echoed whatever is known of the sender, so that a worker can always close at once.
  outbox_.add(source, answer(header, Type::kLeave), body);
  Job* job = jobs_.find_epoch(header.job.value(), header.epoch.value());
  if (job == nullptr) return;
  const std::uint16_t rank = header.rank.value();
  const auto member_of = [&](std::optional<Session>& session) -> Member* {
    if (!session || header.epoch.value() != session->epoch()) return nullptr;
    return rank < session->terms().world ? session->member(rank, source) : nullptr;
  };
  const auto cause_in = [&](const Session& session) {
    const auto cause = leave_cause(body, rank, session.terms().world);
    if (!cause) counters_.add(Counter::kBadLeave);
    return cause;
  };
  if (Member* member = member_of(job->forming)) {
    const auto cause = cause_in(*job->forming);
    if (!cause) return;
    job->forming->withdraw(*member);
    // Without this very instance the others wait in vain.
    if (job->forming->claimed() != 0) {
      counters_.add(Counter::kAborts);
      failed_ = std::move(job->forming);
      job->forming.reset();
      failed_->list_peers();
      if (!failed_->deserted()) {
        outbox_.add(failed_->everybody(), session_header(*job, *failed_, Type::kAbort), *cause);
      }
    }
    return;
  }
  const Member* member = member_of(job->running);
  if (member == nullptr || member->gone) return;
  Session& session = *job->running;
  const auto cause = cause_in(session);
  if (!cause) return;
  counters_.add(Counter::kLeaves);
  session.depart(rank, *cause);
  // Where the ranks disagree the job is over, wherever that was found out.
  if (cause->reason == proto::AbortReason::kMismatch || session.lacks(rank)) {
    abort(*job, session, *cause);
  }
}

void Registry::abort(const Job& job, Session& session, const proto::AbortBody& body) {
  if (session.aborted()) return;
  counters_.add(Counter::kAborts);
  session.abort(body);
  if (session.everybody().empty()) return;
  outbox_.add(session.everybody(), session_header(job, session, Type::kAbort), body);
}

void Registry::send_abort(const Header& request, const Peer& source, const proto::AbortBody& body) {
  outbox_.add(source, answer(request, Type::kAbort), body);
}

void Registry::tick_running(Job& job, Time now) {
  Session& session = *job.running;
  const Session::Silent silent = session.depart_silent(now, config_.member_timeout);
  counters_.add(Counter::kSilentMembers, silent.count);
  if (session.deserted()) {
    job.running.reset();
  } else if (silent.awaited) {
    abort(job, session, abort_body(proto::AbortReason::kMemberSilent, *silent.awaited));
  }
}

void Registry::on_hello(const Header& header, std::span<const std::byte> datagram,
                        const Peer& source) {
  const auto hello = proto::read_body<proto::HelloBody>(datagram);
  const proto::OfferBody offer{.instance = hello.instance,
                               .shards = Be16{config_.shards},
                               .max_values = Be16{config_.max_values},
                               .max_window = Be16{config_.max_window},
                               .max_workers = Be16{config_.max_workers}};
  // As long as the question when that leaves room, so that it probes the path both ways and
  // never amplifies.
  if (datagram.size() < sizeof(Header) + sizeof(offer)) return counters_.add(Counter::kUnpadded);
  Outgoing& outgoing = outbox_.add(source, answer(header, Type::kOffer), offer);
  outgoing.padding = datagram.size() - outgoing.head.size();
}

void Registry::on_join(const Header& header, std::span<const std::byte> datagram,
                       const Peer& source, Time now) {
  const auto body = proto::read_body<proto::JoinBody>(datagram);
  const std::uint64_t instance = body.instance.value();
  Join join{.header = header,
            .source = source,
            .now = now,
            .length = datagram.size(),
            .rank = header.rank.value(),
            .instance = instance,
            .terms = terms_of(header, body),
            .claim = claim_of(body),
            .joiner = joiner_of(header, instance, datagram),
            .waited = (body.flags & proto::kJoinWaited) != 0};
  const proto::Keys keys = keys_of(header);
  if (datagram.size() < least_length(join.terms, keys)) return counters_.add(Counter::kUnpadded);
  if (auto refusal = check_terms(join.terms, join.rank, keys, config_)) {
    return refuse(join, *refusal);
  }
  join.terms.window = std::min(join.terms.window, config_.max_window);

  Job* job = jobs_.find(header.job.value(), join.terms.shard);
  if (replays(job, join.joiner)) return counters_.add(Counter::kReplayed);
  if (job != nullptr && job->running && meet_running(join, *job)) return;
  if (job == nullptr) job = open_job(join);
  if (job != nullptr) meet_forming(join, *job);
}

bool Registry::meet_running(const Join& join, Job& job) {
  Session& session = *job.running;
  Member* member =
      session.terms().world > join.rank ? session.member(join.rank, join.source) : nullptr;
  const bool here = member != nullptr && !member->gone && member->instance == join.instance;
  // Its ranks left it for another aggregator, and are back.
  const bool outdated =
      here && join.claim.members == session.members_digest() && join.claim.moves > session.moves();
  if (here && !outdated) {
    if (!admit(session, join.joiner)) {
      refuse(join, {RefuseReason::kNoMemory});
    } else {
      session.heard(*member, join.source, join.now);
      welcome(job, session, proto::SessionState::kReady, join.source, join.instance, join.length);
    }
    return true;
  }
  if (!session.whole() || outdated) return false;
  const RefuseReason reason =
      join.claim.members == 0 ? RefuseReason::kJobRunning : RefuseReason::kMembers;
  refuse(join, {reason, join.terms.world, session.terms().world});
  return true;
}

Job* Registry::open_job(const Join& join) {
  const std::uint32_t id = join.header.job.value();
  std::optional<Refusal> refusal;
  if (join.claim.members == 0) refusal = jobs_.compare_pool(id, join.terms, join.now);
  if (!refusal && (jobs_.full() || keeps_room_from(join))) {
    refusal = Refusal{RefuseReason::kTooManyJobs, 0, config_.max_jobs};
  }
  if (refusal) {
    refuse(join, *refusal);
    return nullptr;
  }
  return &jobs_.add(id, join.terms.shard);
}

/// Who waited for room before this shard was started again was refused it because of jobs that run
/// still. They are about to come back.
bool Registry::keeps_room_from(const Join& join) const {
  return join.waited && join.now - first_tick_.value_or(join.now) < kComeBack;
}

void Registry::meet_forming(const Join& join, Job& job) {
  if (!job.forming && !form(job, join.terms)) return refuse(join, {RefuseReason::kNoMemory});
  Session& session = *job.forming;
  const bool hears_multicast = (join.header.flags & proto::kFlagMulticast) != 0;
  const bool was_full = session.full();
  if (auto refusal = session.join(join.rank, join.instance, join.terms, join.claim, join.source,
                                  hears_multicast, join.now, config_.forming_timeout)) {
    return refuse(join, *refusal);
  }
  if (!admit(session, join.joiner)) {
    session.withdraw(*session.member(join.rank, join.source));
    return refuse(join, {RefuseReason::kNoMemory});
  }
  counters_.add(Counter::kJoins);
  if (session.full() && session.multicast_settled()) {
    // The announcement to all serves those who know the epoch; this worker may not yet.
    if (make_ready(job)) {
      welcome(job, *job.running, proto::SessionState::kReady, join.source, join.instance,
              join.length);
    }
    return;
  }
  welcome(job, session, proto::SessionState::kForming, join.source, join.instance, join.length);
  if (session.full() && !was_full) send_probe(job, session, join.now);
}

void Registry::welcome(const Job& job, const Session& session, proto::SessionState state,
                       const Peer& source, std::uint64_t instance, std::size_t length) {
  Outgoing& outgoing = outbox_.add(source, session_header(job, session, Type::kWelcome),
                                   welcome_body(session, state, instance));
  outgoing.padding = length - outgoing.head.size();
}

void Registry::send_probe(const Job& job, Session& session, Time now) {
  session.set_probed(now);
  const Peer group{.endpoint = session.group(), .link = 0};
  Header header = session_header(job, session, Type::kProbe);
  header.flags |= proto::kFlagMulticast;
  Outgoing& outgoing = outbox_.add(group, header);
  outgoing.padding = session.datagram_size() - outgoing.head.size();
}

void Registry::refuse(const Join& join, const Refusal& refusal) {
  refusing_.refuse(join.header, join.source, join.instance, refusal, Be16{join.terms.shard});
}

void Registry::challenge(const Header& header, std::span<const std::byte> datagram,
                         const Peer& source) {
  const proto::ChallengeBody body{.instance = Be64{proto::instance_of(header, datagram)}};
  outbox_.add(source, answer(header, Type::kChallenge), body);
}

SessionGuard* Registry::find_guard(std::uint32_t id, std::uint32_t epoch) {
  if (failed_ && failed_->epoch() == epoch) return failed_->guard();
  Job* job = jobs_.find_epoch(id, epoch);
  if (job == nullptr) return nullptr;
  const bool runs = job->running && job->running->epoch() == epoch;
  return (runs ? job->running : job->forming)->guard();
}

void Registry::tick_forming(Job& job, Time now) {
  Session& session = *job.forming;
  session.evict_silent(now, config_.forming_timeout);
  if (session.deserted()) {
    job.forming.reset();
  } else if (session.full()) {
    if (now - session.full_since() >= config_.probe_wait) {
      make_ready(job);
    } else if (now - session.probed() >= kProbeInterval) {
      send_probe(job, session, now);
    }
  } else if (session.moves() != 0 && now - session.called() >= kCallInterval) {
    call_members(job, session, now);
  }
}

/// A rank that lost another aggregator first, or alone, pulls the others along.
void Registry::call_members(const Job& job, Session& session, Time now) {
  session.set_called(now);
  const Session* there = jobs_.sister(job);
  if (there == nullptr) return;
  counters_.add(Counter::kMoves);
  const proto::MoveBody body{.members = Be64{session.claimed()},
                             .shard = Be16{session.terms().shard},
                             .moves = Be16{session.moves()}};
  // Under the epoch that they know.
  outbox_.add(there->everybody(), session_header(job, *there, Type::kMove), body);
}

/// False when there is no memory for its members.
bool Registry::form(Job& job, const Terms& terms) {
  try {
    const std::uint32_t epoch = take_epoch();
    job.forming.emplace(epoch, terms, group_of(job.id, terms),
                        guard_.make_session(job.id, epoch, terms.world));
  } catch (const std::exception&) {
    job.forming.reset();
  }
  return job.forming.has_value();
}

bool Registry::make_ready(Job& job) {
  Session& session = *job.forming;
  if (!session.as_claimed()) {
    // Those of a new job stay: a rank's last JOIN before it was started again must not fail them.
    refused_.clear();
    session.expel_claimants(refused_);
    refusing_.refuse_all(job, session, refused_, RefuseReason::kMembers);
    return false;
  }
  try {
    session.make_ready(config_.first_sequence, kernels_);
  } catch (const std::bad_alloc&) {
    failed_ = std::move(job.forming);
    job.forming.reset();
    failed_->list_peers();
    refusing_.refuse_all(job, *failed_, failed_->everybody(), RefuseReason::kNoMemory);
    return false;
  }
  counters_.add(Counter::kSessions);
  if (session.claimed() != 0) counters_.add(Counter::kResumedSessions);
  job.running = std::move(job.forming);
  job.forming.reset();
  outbox_.add(job.running->everybody(), session_header(job, *job.running, Type::kWelcome),
              welcome_body(*job.running, proto::SessionState::kReady, 0));
  return true;
}

std::uint32_t Registry::take_epoch() {
  if (next_epoch_ == 0) ++next_epoch_;  // 0 means none
  return next_epoch_++;
}

proto::Endpoint Registry::group_of(std::uint32_t job, const Terms& terms) const {
  if (config_.multicast_address == 0 || terms.world < 2) return {};
  return {config_.multicast_address + job % 256, config_.multicast_port};
}

}  // namespace natagg::aggregator
