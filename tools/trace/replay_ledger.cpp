// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/replay_ledger.hpp"

#include <algorithm>
#include <cstring>

#include "proto/serial.hpp"

namespace natagg::tools {

using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Header;
using proto::Type;

ReplayLedger::ReplayLedger(const TraceSurvey& survey)
    : survey_(survey), live_(survey.sessions().size()) {}

std::vector<std::byte> ReplayLedger::join(std::size_t index, std::uint16_t rank, std::uint32_t job,
                                          std::uint64_t instance) const {
  const TraceSession& session = survey_.sessions()[index];
  const TraceSession::Join& recorded = session.joins()[rank];
  Header header = proto::read_header(recorded.datagram);
  header.job = Be32{job};
  header.epoch = Be32{};
  header.flags = static_cast<std::uint8_t>(header.flags & ~proto::kFlagMulticast);
  proto::JoinBody body = recorded.body();
  body.instance = Be64{instance};
  // A session that was resumed begins here as a new one, at the same chunk.
  body.members = Be64{};
  body.resume = Be32{};
  body.held = Be32{};
  body.moves = Be16{};
  // All that a replay takes waits for all ranks.
  body.stragglers = Be16{};
  body.quorum = Be16{};
  body.values = Be16{session.values()};
  body.window = Be16{session.window()};
  body.flags = proto::kJoinValuesPinned;
  std::vector<std::byte> datagram(proto::datagram_size(session.values()));
  std::memcpy(datagram.data(), &header, sizeof(header));
  std::memcpy(datagram.data() + sizeof(header), &body, sizeof(body));
  return datagram;
}

std::vector<std::byte> ReplayLedger::control(std::size_t index, std::uint16_t rank,
                                             Type type) const {
  const LiveTerms& terms = *live_[index].terms;
  Header header = proto::make_header(type);
  header.job = Be32{terms.job};
  header.epoch = Be32{terms.epoch};
  header.rank = Be16{rank};
  std::vector<std::byte> datagram(sizeof(header) + proto::body_size(type));
  std::memcpy(datagram.data(), &header, sizeof(header));
  if (type == Type::kLeave) {
    proto::LeaveBody body{};
    body.rank = body.other_rank = Be16{proto::kAggregatorRank};
    body.reason = proto::LeaveReason::kClosed;
    std::memcpy(datagram.data() + sizeof(header), &body, sizeof(body));
  }
  return datagram;
}

void ReplayLedger::set_live(std::size_t index, const LiveTerms& terms) {
  live_[index].terms = terms;
  by_epoch_[{terms.job, terms.epoch}] = index;
}

bool ReplayLedger::may_send(std::size_t index, std::uint32_t sequence) const {
  const TraceSession& session = survey_.sessions()[index];
  const std::uint32_t before = sequence - session.window();
  return proto::serial_less(before, session.first_sequence()) || answered(index, before);
}

bool ReplayLedger::may_leave(std::size_t index) const {
  const TraceSession& session = survey_.sessions()[index];
  return session.aborted() || live_[index].answered.size() >= session.complete_chunks();
}

void ReplayLedger::hold(std::size_t index, std::uint32_t sequence, HeldPacket packet) {
  ++held_;
  const std::uint32_t before = sequence - survey_.sessions()[index].window();
  live_[index].held[before].push_back(std::move(packet));
}

std::vector<HeldPacket> ReplayLedger::release(std::size_t index, std::uint32_t sequence) {
  auto node = live_[index].held.extract(sequence);
  return node.empty() ? std::vector<HeldPacket>{} : std::move(node.mapped());
}

void ReplayLedger::translate(std::size_t index, std::span<std::byte> datagram) const {
  const TraceSession& session = survey_.sessions()[index];
  const LiveTerms& terms = *live_[index].terms;
  Header header = proto::read_header(datagram);
  header.job = Be32{terms.job};
  header.epoch = Be32{terms.epoch};
  if (header.type == Type::kData) {
    const std::uint32_t recorded = header.sequence.value();
    const std::uint32_t sequence = recorded - session.first_sequence() + terms.first_sequence;
    const std::uint32_t mask = session.window() - 1U;
    // A slot that was wrong stays wrong.
    header.slot = Be16{
        static_cast<std::uint16_t>(header.slot.value() - (recorded & mask) + (sequence & mask))};
    header.sequence = Be32{sequence};
  }
  std::memcpy(datagram.data(), &header, sizeof(header));
}

std::optional<ReplayLedger::Answer> ReplayLedger::take(std::span<const std::byte> datagram) {
  const proto::Reject reject = proto::validate(datagram);
  if (reject != proto::Reject::kNone) {
    ++answers_.wrong;
    findings_.add(
        {}, "the aggregator sent what is no natagg packet: " + std::string(to_string(reject)));
    return std::nullopt;
  }
  const Header header = proto::read_header(datagram);
  const auto found = by_epoch_.find({header.job.value(), header.epoch.value()});
  if (found == by_epoch_.end()) return std::nullopt;
  const std::size_t index = found->second;
  const TraceSession& session = survey_.sessions()[index];
  Live& live = live_[index];
  if (header.type == Type::kAbort && !live.aborted) {
    live.aborted = true;
    if (!session.aborted()) {
      const auto body = proto::read_body<proto::AbortBody>(datagram);
      findings_.add({}, session.describe() +
                            ": the aggregator ends the session, which it did not " +
                            "when it was recorded: " + std::string(to_string(body.reason)) +
                            ", rank " + std::to_string(body.rank.value()));
    }
  }
  if (header.type != Type::kResult) return std::nullopt;

  const std::uint32_t sequence =
      header.sequence.value() - live.terms->first_sequence + session.first_sequence();
  const TraceChunk* chunk = session.chunk(sequence);
  if (chunk == nullptr || !chunk->complete()) {
    ++answers_.wrong;
    findings_.add(chunk == nullptr ? PacketPlace{} : chunk->first_packet,
                  session.describe() + ": the aggregator answers sequence " +
                      std::to_string(sequence) + ", to which not all ranks contribute");
    return std::nullopt;
  }
  const auto bytes = proto::payload(datagram);
  const aggregator::Chunk terms{.element = header.element.value(),
                                .fingerprint = header.fingerprint.value(),
                                .operation = header.operation.value(),
                                .count = header.count.value()};
  const bool specials = (header.flags & proto::kFlagSpecials) != 0;
  const bool right = terms == chunk->terms && specials == chunk->specials &&
                     std::ranges::equal(bytes, chunk->expected);
  if (!right) {
    ++answers_.wrong;
    findings_.add(chunk->first_packet,
                  session.describe() + ": the live RESULT of sequence " + std::to_string(sequence) +
                      " is wrong: " + first_difference(bytes, chunk->expected));
  }
  const bool first = live.answered.insert(sequence).second;
  if (first && right) ++answers_.right;
  return Answer{.session = index, .sequence = sequence, .first = first};
}

void ReplayLedger::finish() {
  for (std::size_t index = 0; index < live_.size(); ++index) {
    const TraceSession& session = survey_.sessions()[index];
    const Live& live = live_[index];
    // What the recorded session did not live to see, this one need not either.
    if (live.aborted && session.aborted()) continue;
    std::uint64_t missing = 0;
    const TraceChunk* first = nullptr;
    for (const auto& [sequence, chunk] : session.chunks()) {
      if (!chunk.complete() || live.answered.contains(sequence)) continue;
      ++missing;
      if (first == nullptr || chunk.first_packet < first->first_packet) first = &chunk;
    }
    if (missing == 0) continue;
    answers_.missing += missing;
    findings_.add(first->first_packet,
                  session.describe() + ": no RESULT of " + std::to_string(missing) +
                      " chunks to which all ranks contribute, the first of them here");
  }
}

}  // namespace natagg::tools
