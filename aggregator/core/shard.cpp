// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/shard.hpp"

#include <bit>
#include <stdexcept>
#include <string>

#include "aggregator/core/registry.hpp"
#include "aggregator/core/slot.hpp"
#include "proto/operation.hpp"

namespace natagg::aggregator {
namespace {

using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Header;
using proto::Reject;
using proto::Type;

void check(bool in_range, const char* field, std::uint64_t value, const char* range) {
  if (in_range) return;
  throw std::invalid_argument(std::string("shard configuration: ") + field + " is " +
                              std::to_string(value) + ", must be " + range);
}

const ShardConfig& checked(const ShardConfig& config) {
  check(config.shards >= 1 && config.shards <= proto::kMaxShards, "shards", config.shards,
        "1 to 256");
  check(config.max_jobs >= 1, "max_jobs", config.max_jobs, "at least 1");
  check(config.max_workers >= 1, "max_workers", config.max_workers, "1 to 65535");
  check(std::has_single_bit(config.max_window), "max_window", config.max_window, "a power of two");
  check(config.max_values >= proto::kMinValues && config.max_values <= proto::kMaxValues,
        "max_values", config.max_values, "128 to 8832");
  return config;
}

}  // namespace

class Shard::Impl {
 public:
  explicit Impl(const ShardConfig& config)
      : config_(checked(config)),
        kernels_(config.kernels != nullptr ? *config.kernels : default_kernels()),
        guard_(config_, counters_),
        registry_(config_, kernels_, guard_, counters_, outbox_) {}

  std::span<const Outgoing> receive(std::span<const std::byte> datagram, const Peer& source,
                                    Time now, bool congested) {
    outbox_.clear();
    congested_ = congested;
    const Reject reject =
        proto::validate(datagram, guard_.enabled() ? proto::Keys::kSome : proto::Keys::kNone);
    counters_.add(reject);
    if (reject != Reject::kNone) {
      registry_.refusing().refuse_foreign(datagram, source, reject);
      return outbox_.contents();
    }
    const Header header = proto::read_header(datagram);
    if (guard_.enabled()) return receive_guarded(header, datagram, source, now);
    dispatch(header, datagram, source, now);
    return outbox_.contents();
  }

  std::span<const Outgoing> tick(Time now) {
    outbox_.clear();
    registry_.tick(now);
    if (outbox_.empty()) tend_stragglers(now);
    if (guard_.enabled()) seal();
    return outbox_.contents();
  }

  [[nodiscard]] const Counters& counters() const { return counters_; }

  [[nodiscard]] Usage usage() const {
    Usage usage{.jobs = registry_.jobs().size()};
    for (const Job& job : registry_.jobs()) {
      if (!job.running) continue;
      ++usage.ready_sessions;
      usage.open_slots += job.running->slots().open_slots();
    }
    return usage;
  }

 private:
  void dispatch(const Header& header, std::span<const std::byte> datagram, const Peer& source,
                Time now) {
    switch (header.type) {
      case Type::kData:
      case Type::kPartial: on_values(header, datagram, source, now); break;
      case Type::kHeartbeat: registry_.on_heartbeat(header, source, now); break;
      case Type::kHello: registry_.on_hello(header, datagram, source); break;
      case Type::kJoin: registry_.on_join(header, datagram, source, now); break;
      case Type::kLeave: registry_.on_leave(header, datagram, source); break;
      default: counters_.add(Counter::kUnexpectedType);
    }
  }

  std::span<const Outgoing> receive_guarded(const Header& header,
                                            std::span<const std::byte> datagram, const Peer& source,
                                            Time now) {
    SessionGuard* session = registry_.find_guard(header.job.value(), header.epoch.value());
    switch (guard_.judge(header, datagram, source, session, now)) {
      case Guard::Verdict::kAdmitted: dispatch(header, datagram, source, now); break;
      case Guard::Verdict::kRefused:
        registry_.refusing().refuse_key(header, datagram, source, guard_.refusal());
        break;
      case Guard::Verdict::kUnchallenged: registry_.challenge(header, datagram, source); break;
      case Guard::Verdict::kUnknown:
        registry_.send_abort(
            header, source,
            abort_body(proto::AbortReason::kUnknownSession, proto::kAggregatorRank));
        break;
      case Guard::Verdict::kDropped: break;
    }
    seal();
    return outbox_.contents();
  }

  void seal() {
    guard_.seal(outbox_, [this](std::uint32_t job, std::uint32_t epoch) {
      return registry_.find_guard(job, epoch);
    });
  }

  /// What one packet brings to a chunk: a rank's values, or the partial result that it has.
  struct Brought {
    const Header& header;
    std::span<const std::uint8_t> values;
    std::span<const std::uint8_t> ranks{};  // of a result
    const Peer& source;
    Time now;
    std::uint32_t sequence = header.sequence.value();
    std::uint16_t rank = header.rank.value();

    [[nodiscard]] bool is_result() const { return !ranks.empty(); }
    [[nodiscard]] Chunk chunk() const {
      return {.element = header.element.value(),
              .fingerprint = header.fingerprint.value(),
              .operation = header.operation.value(),
              .count = header.count.value()};
    }
  };

  void on_values(const Header& header, std::span<const std::byte> datagram, const Peer& source,
                 Time now) {
    const auto [job, session, member] = registry_.find_member(header, source, now);
    if (member == nullptr) return;
    Brought brought{
        .header = header, .values = proto::payload(datagram), .source = source, .now = now};
    if (header.type == Type::kPartial) brought.ranks = proto::rank_set(datagram);
    if (!as_agreed(*session, brought)) return counters_.add(Counter::kBadTerms);
    SlotTable& slots = session->slots();
    if (header.slot.value() != (brought.sequence & (slots.window() - 1))) {
      counters_.add(Counter::kBadSlot);
      return;
    }
    Backlog* backlog = session->backlog();
    if (backlog != nullptr && !backlog->empty()) backlog->came(brought.sequence, brought.rank);
    switch (slots.locate(brought.sequence)) {
      case SlotTable::Position::kFinished: return ask_for_result(*job, *session, brought);
      case SlotTable::Position::kOpen:
      case SlotTable::Position::kNext: contribute(*job, *session, brought); break;
      case SlotTable::Position::kHeld: hold_back(*job, *session, brought); break;
      case SlotTable::Position::kStale:
        if (const auto kept = backlog != nullptr ? backlog->find(brought.sequence) : std::nullopt) {
          come_late(*job, *session, brought, *kept);
        } else {
          counters_.add(Counter::kStaleSequence);
        }
        break;
      case SlotTable::Position::kEarly: counters_.add(Counter::kEarlySequence); break;
    }
  }

  static bool as_agreed(const Session& session, const Brought& brought) {
    const Terms& terms = session.terms();
    const bool nearest = terms.rounding == static_cast<std::uint8_t>(proto::Rounding::kNearest);
    if (brought.values.size() > terms.values || brought.header.shift != terms.shift ||
        ((brought.header.flags & proto::kFlagNearest) != 0) != nearest) {
      return false;
    }
    // Only of a lost session can a rank have a result that is not from here.
    const proto::Operation operation = proto::from_fingerprint(brought.header.fingerprint.value());
    return !brought.is_result() ||
           (proto::may_be_partial(operation.reduction) && session.may_be_known(brought.sequence) &&
            proto::count_ranks(brought.ranks, terms.world) != 0);
  }

  void send_cached(const Job& job, const Session& session, const Brought& brought,
                   const Result& result) {
    counters_.add(Counter::kCachedResults);
    send_result(job, session, brought.sequence, result,
                std::span<const Peer>(&session.member(brought.rank).peer, 1));
  }

  /// Answers, and counts, what can open or fill no slot any more.
  bool is_over(Job& job, Session& session, const Brought& brought, bool opens) {
    if (session.aborted()) {
      counters_.add(Counter::kEnded);
      registry_.send_abort(brought.header, brought.source, *session.aborted());
      return true;
    }
    if (opens && session.departed() &&
        !session.goes_on(brought.sequence, brought.header.fingerprint.value())) {
      counters_.add(Counter::kDeparted);
      registry_.abort(job, session, *session.departed());
      return true;
    }
    return false;
  }

  static bool leaves_out(const Result& result, std::uint16_t rank) {
    return result.partial && !proto::holds(result.bytes.subspan(result.chunk.count), rank);
  }

  /// To a chunk that is finished.
  void ask_for_result(Job& job, Session& session, const Brought& brought) {
    SlotTable& slots = session.slots();
    const Result result = slots.result(brought.sequence);
    const bool awaited = slots.awaits(brought.sequence, brought.rank);
    if (awaited || leaves_out(result, brought.rank)) {
      if (come_late(job, session, brought, result) && awaited) {
        slots.arrive(brought.sequence, brought.rank);
      }
      return;
    }
    send_cached(job, session, brought, result);
    send_nack(brought, session.losses().repeated(slots, brought.rank));
    if (session.missed_result(brought.rank)) counters_.add(Counter::kDeafened);
  }

  /// To a chunk that was finished without this rank, or left its slot before the rank had the
  /// result; false when it is another chunk.
  bool come_late(Job& job, Session& session, const Brought& brought, const Result& result) {
    if (result.chunk != brought.chunk()) {
      if (!is_over(job, session, brought, false)) {
        mismatch(job, session, brought, result.chunk, result.opener);
      }
      return false;
    }
    if (leaves_out(result, brought.rank) && !brought.is_result()) {
      counters_.add(Counter::kLateContributions);
    }
    send_cached(job, session, brought, result);
    return true;
  }

  /// A chunk for a slot that has a result which some rank may yet ask for.
  void hold_back(Job& job, Session& session, const Brought& brought) {
    SlotTable& slots = session.slots();
    const std::uint32_t before = brought.sequence - slots.window();
    // Whoever sends this has the result of the chunk before.
    if (slots.awaits(before, brought.rank)) slots.arrive(before, brought.rank);
    Backlog& backlog = *session.backlog();
    if (slots.locate(brought.sequence) == SlotTable::Position::kNext ||
        backlog.has_room(brought.sequence)) {
      return contribute(job, session, brought);
    }
    if (is_over(job, session, brought, true)) return;
    counters_.add(Counter::kHeldBack);
    send_pending(brought, {.missing = Be16{backlog.hold(brought.sequence, brought.now)},
                           .missing_count = {}});
  }

  /// Opens a slot, and keeps its last but one result if it is not yet dispensable.
  static void open(Session& session, const Brought& brought) {
    SlotTable& slots = session.slots();
    const std::uint32_t sequence = brought.sequence;
    const std::uint32_t before = sequence - slots.window();
    const std::uint32_t overwritten = before - slots.window();
    if (slots.locate(sequence) == SlotTable::Position::kHeld &&
        slots.locate(overwritten) == SlotTable::Position::kFinished) {
      session.backlog()->keep(overwritten, slots.result(overwritten), slots.came(before));
    }
    slots.open(sequence, brought.chunk(), brought.rank);
    session.opened(sequence);
    if (session.may_be_partial(sequence, brought.header.fingerprint.value())) {
      session.watch()->start(sequence, brought.now);
    }
  }

  /// A contribution to a chunk that is open, or that it opens.
  void contribute(Job& job, Session& session, const Brought& brought) {
    SlotTable& slots = session.slots();
    const std::uint32_t sequence = brought.sequence;
    const bool is_open = slots.locate(sequence) == SlotTable::Position::kOpen;
    if (is_over(job, session, brought, !is_open)) return;
    if (is_open && slots.has_contributed(sequence, brought.rank)) {
      counters_.add(Counter::kDuplicateOpen);
      send_pending(brought, slots.pending(sequence));
      return send_nack(brought, session.losses().repeated(slots, brought.rank));
    }
    const Chunk chunk = brought.chunk();
    if (is_open && slots.chunk(sequence) != chunk) {
      return mismatch(job, session, brought, slots.chunk(sequence), slots.opener(sequence));
    }

    const Scan scan = kernels_.scan(brought.values.data(), brought.values.size());
    if (scan.malformed) {
      counters_.add(Counter::kMalformedByte);
      return;
    }
    if (!is_open) open(session, brought);
    if (brought.is_result()) {
      counters_.add(Counter::kKnownResults);
      slots.adopt(sequence, brought.rank, brought.values, brought.ranks, scan.any_special);
      return send_to_all(job, session, sequence);
    }
    counters_.add(Counter::kContributions);
    session.contributed(brought.rank);
    StragglerWatch* watch = session.watch();
    nat8::Tally tally;
    if (slots.contribute(sequence, brought.rank, brought.values, scan, tally)) {
      if (watch != nullptr) watch->stop(sequence);
      finish(job, session, sequence, tally);
    } else if (watch != nullptr &&
               (watch->is_overdue(sequence) || slots.lacks_only_excused(sequence))) {
      finish_partially(job, session, sequence);
    }
    const std::optional<Lost> lost = session.losses().contributed(slots, brought.rank, sequence);
    send_nack(brought, lost);
    if (congested_ && !lost && session.losses().tells_of_congestion(brought.rank, sequence)) {
      send_nack(brought, Lost{.first = sequence, .lacking = 0});
    }
  }

  /// Finishes the first chunk that is overdue, in whatever session, or leaves a rank behind.
  void tend_stragglers(Time now) {
    for (Job& job : registry_.jobs()) {
      if (!job.running || job.running->watch() == nullptr || job.running->aborted()) continue;
      Session& session = *job.running;
      leave_behind(job, session, now);
      if (!outbox_.empty()) return;
      if (!session.all_take_part()) continue;
      while (const auto sequence = session.watch()->take_overdue(now)) {
        finish_partially(job, session, *sequence);
        if (!outbox_.empty()) return;
      }
    }
  }

  /// A rank for which the others have waited long enough, if they are a quorum without it.
  void leave_behind(Job& job, Session& session, Time now) {
    if (session.joined() <= session.terms().quorum) return;
    const auto rank = session.backlog()->take_late(now);
    if (!rank) return;
    counters_.add(Counter::kLeftBehind);
    const proto::AbortBody body = abort_body(proto::AbortReason::kLeftBehind, *rank);
    outbox_.add(session.member(*rank).peer, session_header(job, session, Type::kAbort), body);
    session.depart(*rank, body);
    if (session.lacks(*rank)) registry_.abort(job, session, body);
  }

  /// Of an overdue chunk, when it has enough ranks. A rank that does not know that the session is
  /// ready could not resume it with those who have results.
  void finish_partially(const Job& job, Session& session, std::uint32_t sequence) {
    SlotTable& slots = session.slots();
    if (slots.contributions(sequence) < session.terms().quorum || !session.all_take_part()) return;
    session.watch()->stop(sequence);
    nat8::Tally tally;
    slots.finish_partially(sequence, tally);
    counters_.add(Counter::kPartialResults);
    finish(job, session, sequence, tally);
  }

  void finish(const Job& job, const Session& session, std::uint32_t sequence,
              const nat8::Tally& tally) {
    counters_.add(Counter::kResults);
    if (session.slots().is_wide(sequence)) counters_.add(Counter::kWideSlots);
    counters_.add(Counter::kValuesClipped, tally.clipped);
    counters_.add(Counter::kValuesZero, tally.zeros);
    counters_.add(Counter::kValuesInf, tally.infs);
    counters_.add(Counter::kValuesNan, tally.nans);
    send_to_all(job, session, sequence);
  }

  void send_to_all(const Job& job, const Session& session, std::uint32_t sequence) {
    const Result result = session.slots().result(sequence);
    send_result(job, session, sequence, result, session.hearing_group(), proto::kFlagMulticast);
    send_result(job, session, sequence, result, session.deaf());
  }

  void send_result(const Job& job, const Session& session, std::uint32_t sequence,
                   const Result& result, std::span<const Peer> to, std::uint8_t flags = 0) {
    if (to.empty()) return;
    Header header = session_header(job, session, result.partial ? Type::kPartial : Type::kResult);
    header.slot = Be16{static_cast<std::uint16_t>(sequence & (session.slots().window() - 1))};
    header.sequence = Be32{sequence};
    header.operation = Be32{result.chunk.operation};
    header.element = Be64{result.chunk.element};
    header.fingerprint = Be64{result.chunk.fingerprint};
    header.count = Be16{result.chunk.count};
    header.flags = flags;
    if (session.terms().rounding != 0) header.flags |= proto::kFlagNearest;
    if (result.specials) header.flags |= proto::kFlagSpecials;
    outbox_.add(to, header).body = result.bytes;
  }

  void send_pending(const Brought& brought, const proto::PendingBody& body) {
    counters_.add(Counter::kPendingReplies);
    Header header = answer(brought.header, Type::kPending);
    header.slot = brought.header.slot;
    header.sequence = brought.header.sequence;
    header.operation = brought.header.operation;
    header.element = brought.header.element;
    outbox_.add(brought.source, header, body);
  }

  void send_nack(const Brought& brought, const std::optional<Lost>& lost) {
    if (!lost) return;
    counters_.add(Counter::kNacks);
    Header header = answer(brought.header, Type::kNack);
    header.sequence = Be32{lost->first};
    outbox_.add(brought.source, header, proto::NackBody{.lacking = Be64{lost->lacking}});
  }

  /// With `chunk`, which `opener` has sent.
  void mismatch(Job& job, Session& session, const Brought& brought, const Chunk& chunk,
                std::uint16_t opener) {
    counters_.add(Counter::kMismatch);
    const Header& header = brought.header;
    proto::AbortBody body = abort_body(proto::AbortReason::kMismatch, brought.rank);
    body.other_rank = Be16{opener};
    body.fingerprint = header.fingerprint;
    body.other_fingerprint = Be64{chunk.fingerprint};
    body.operation = header.operation;
    body.other_operation = Be32{chunk.operation};
    registry_.abort(job, session, body);
  }

  ShardConfig config_;
  const Kernels& kernels_;
  Counters counters_;
  bool congested_ = false;  // the packet that is being received
  Outbox outbox_;
  Guard guard_;
  Registry registry_;
};

Shard::Shard(const ShardConfig& config) : impl_(std::make_unique<Impl>(config)) {}
Shard::~Shard() = default;
Shard::Shard(Shard&&) noexcept = default;
Shard& Shard::operator=(Shard&&) noexcept = default;

std::span<const Outgoing> Shard::receive(std::span<const std::byte> datagram, const Peer& source,
                                         Time now, bool congested) {
  return impl_->receive(datagram, source, now, congested);
}

std::span<const Outgoing> Shard::tick(Time now) {
  return impl_->tick(now);
}
const Counters& Shard::counters() const {
  return impl_->counters();
}
Shard::Usage Shard::usage() const {
  return impl_->usage();
}

}  // namespace natagg::aggregator
