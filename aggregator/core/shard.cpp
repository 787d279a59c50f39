// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/shard.hpp"

#include <bit>
#include <stdexcept>
#include <string>

#include "aggregator/core/registry.hpp"
#include "aggregator/core/slot.hpp"

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
                                    Time now) {
    outbox_.clear();
    const Reject reject =
        proto::validate(datagram, guard_.enabled() ? proto::Keys::kSome : proto::Keys::kNone);
    counters_.add(reject);
    if (reject != Reject::kNone) {
      registry_.refuse_foreign(datagram, source, reject);
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
      case Type::kData: on_data(header, proto::payload(datagram), source, now); break;
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
        registry_.refuse_key(header, datagram, source, guard_.refusal());
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

  void on_data(const Header& header, std::span<const std::uint8_t> bytes, const Peer& source,
               Time now) {
    const auto [job, session, member] = registry_.find_member(header, source, now);
    if (member == nullptr) return;
    const Terms& terms = session->terms();
    const bool nearest = terms.rounding == static_cast<std::uint8_t>(proto::Rounding::kNearest);
    if (bytes.size() > terms.values || header.shift != terms.shift ||
        ((header.flags & proto::kFlagNearest) != 0) != nearest) {
      counters_.add(Counter::kBadTerms);
      return;
    }
    SlotTable& slots = session->slots();
    const std::uint32_t sequence = header.sequence.value();
    if (header.slot.value() != (sequence & (slots.window() - 1))) {
      counters_.add(Counter::kBadSlot);
      return;
    }
    switch (slots.locate(sequence)) {
      case SlotTable::Position::kFinished:
        counters_.add(Counter::kCachedResults);
        send_result(*job, *session, sequence, std::span<const Peer>(&member->peer, 1));
        if (session->missed_result(header.rank.value())) counters_.add(Counter::kDeafened);
        break;
      case SlotTable::Position::kOpen:
      case SlotTable::Position::kNext: contribute(*job, *session, header, bytes, source); break;
      case SlotTable::Position::kStale: counters_.add(Counter::kStaleSequence); break;
      case SlotTable::Position::kEarly: counters_.add(Counter::kEarlySequence); break;
    }
  }

  /// A contribution to a chunk that is open, or that it opens.
  void contribute(Job& job, Session& session, const Header& header,
                  std::span<const std::uint8_t> bytes, const Peer& source) {
    SlotTable& slots = session.slots();
    const std::uint32_t sequence = header.sequence.value();
    const std::uint16_t rank = header.rank.value();
    if (session.aborted()) {
      counters_.add(Counter::kEnded);
      return registry_.send_abort(header, source, *session.aborted());
    }

    const bool open = slots.locate(sequence) == SlotTable::Position::kOpen;
    if (open && slots.has_contributed(sequence, rank)) {
      counters_.add(Counter::kDuplicateOpen);
      return send_pending(header, session, source);
    }
    if (!open && session.departed()) {
      counters_.add(Counter::kDeparted);
      return registry_.abort(job, session, *session.departed());
    }
    const Chunk chunk{.element = header.element.value(),
                      .fingerprint = header.fingerprint.value(),
                      .operation = header.operation.value(),
                      .count = header.count.value()};
    if (open && slots.chunk(sequence) != chunk) return mismatch(job, session, header);

    const Scan scan = kernels_.scan(bytes.data(), bytes.size());
    if (scan.malformed) {
      counters_.add(Counter::kMalformedByte);
      return;
    }
    if (!open) slots.open(sequence, chunk, rank);
    counters_.add(Counter::kContributions);
    session.contributed(rank);
    nat8::Tally tally;
    if (!slots.contribute(sequence, rank, bytes, scan, tally)) return;
    counters_.add(Counter::kResults);
    if (slots.is_wide(sequence)) counters_.add(Counter::kWideSlots);
    counters_.add(Counter::kValuesClipped, tally.clipped);
    counters_.add(Counter::kValuesZero, tally.zeros);
    counters_.add(Counter::kValuesInf, tally.infs);
    counters_.add(Counter::kValuesNan, tally.nans);
    send_result(job, session, sequence, session.hearing_group(), proto::kFlagMulticast);
    send_result(job, session, sequence, session.deaf());
  }

  void send_result(const Job& job, const Session& session, std::uint32_t sequence,
                   std::span<const Peer> to, std::uint8_t flags = 0) {
    if (to.empty()) return;
    const Result result = session.slots().result(sequence);
    Header header = session_header(job, session, Type::kResult);
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

  void send_pending(const Header& request, const Session& session, const Peer& source) {
    counters_.add(Counter::kPendingReplies);
    Header header = answer(request, Type::kPending);
    header.slot = request.slot;
    header.sequence = request.sequence;
    header.operation = request.operation;
    header.element = request.element;
    outbox_.add(source, header, session.slots().pending(request.sequence.value()));
  }

  void mismatch(Job& job, Session& session, const Header& header) {
    counters_.add(Counter::kMismatch);
    const std::uint32_t sequence = header.sequence.value();
    const Chunk& chunk = session.slots().chunk(sequence);
    proto::AbortBody body = abort_body(proto::AbortReason::kMismatch, header.rank.value());
    body.other_rank = Be16{session.slots().opener(sequence)};
    body.fingerprint = header.fingerprint;
    body.other_fingerprint = Be64{chunk.fingerprint};
    body.operation = header.operation;
    body.other_operation = Be32{chunk.operation};
    registry_.abort(job, session, body);
  }

  ShardConfig config_;
  const Kernels& kernels_;
  Counters counters_;
  Outbox outbox_;
  Guard guard_;
  Registry registry_;
};

Shard::Shard(const ShardConfig& config) : impl_(std::make_unique<Impl>(config)) {}
Shard::~Shard() = default;
Shard::Shard(Shard&&) noexcept = default;
Shard& Shard::operator=(Shard&&) noexcept = default;

std::span<const Outgoing> Shard::receive(std::span<const std::byte> datagram, const Peer& source,
                                         Time now) {
  return impl_->receive(datagram, source, now);
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
