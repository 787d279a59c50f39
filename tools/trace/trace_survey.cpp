// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/trace_survey.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/operation.hpp"

namespace natagg::tools {

using proto::Header;
using proto::Type;

TraceSurvey::TraceSurvey(std::vector<std::string> paths) : paths_(std::move(paths)) {
  TraceMerge trace(paths_);
  name_ = trace.name();
  read(trace);
}

TraceSurvey::TraceSurvey(TraceReader& reader) : name_(reader.name()) {
  read(reader);
}

void TraceSurvey::read(auto& trace) {
  while (const auto packet = trace.next()) {
    if (packets_++ == 0) first_time_ = packet->time;
    last_time_ = std::max(last_time_, packet->time);
    take(*packet);
  }
  foreign_ = trace.foreign();
  if (packets_ == 0) throw TraceError(name_ + ": has no natagg packet");
  if (sessions_.empty()) throw TraceError(name_ + ": no session becomes ready in it");
  for (TraceSession& session : sessions_) session.finish(name_);
}

void TraceSurvey::take(const TracePacket& packet) {
  const Header header = proto::read_header(packet.datagram);
  switch (header.type) {
    case Type::kJoin: return on_join(packet, header);
    case Type::kWelcome: return on_welcome(packet, header);
    case Type::kData:
    case Type::kPartial: return on_values(packet, header);
    case Type::kResult:
      return session(packet, header, packet.from, std::nullopt).on_result(packet, findings_);
    case Type::kAbort:
      if (const auto index = session_of(packet.from, header)) sessions_[*index].on_abort();
      return;
    default: return;
  }
}

void TraceSurvey::on_values(const TracePacket& packet, const Header& header) {
  const bool answer = header.rank.value() == proto::kAggregatorRank;
  TraceSession& found = session(packet, header, answer ? packet.from : packet.to, std::nullopt);
  const proto::Operation operation = proto::from_fingerprint(header.fingerprint.value());
  if (found.drops_stragglers() && proto::may_be_partial(operation.reduction)) {
    throw TraceError(name_ + ": " + to_string(packet.place) + " is of a " +
                     proto::to_string(operation) + " of " + found.describe() +
                     ", which has a straggler deadline: which ranks its results have depends on "
                     "when packets came, and no replay repeats that");
  }
  if (header.type == Type::kData) found.on_data(packet, findings_);
}

void TraceSurvey::on_join(const TracePacket& packet, const Header& header) {
  const auto body = proto::read_body<proto::JoinBody>(packet.datagram);
  const std::uint16_t rank = header.rank.value();
  const std::uint16_t world = body.world.value();
  if (rank >= world) return;  // refused
  const PlaceKey key{packet.to, header.job.value(), body.shard.value()};
  TraceSession::Joins& joins = joins_[key];
  // Another world is another job's beginning.
  if (joins.size() != world) joins.assign(world, {});
  joins[rank] = {.from = packet.from, .datagram = {packet.datagram.begin(), packet.datagram.end()}};
  // Captures of several machines that were merged may have it after the first of its session.
  for (const std::size_t index : open_[key]) sessions_[index].on_join(rank, joins[rank]);
}

void TraceSurvey::on_welcome(const TracePacket& packet, const Header& header) {
  const auto body = proto::read_body<proto::WelcomeBody>(packet.datagram);
  if (body.state != proto::SessionState::kReady || header.epoch.value() == 0) return;
  session(packet, header, packet.from, body.shard.value()).on_welcome(body);
}

std::optional<std::size_t> TraceSurvey::session_of(const proto::Endpoint& shard,
                                                   const Header& header) const {
  const auto found = by_epoch_.find({shard, header.job.value(), header.epoch.value()});
  return found == by_epoch_.end() ? std::nullopt : std::optional(found->second);
}

/// Why a packet's session cannot be told, as the end of a sentence.
std::string TraceSurvey::why_unknown(const proto::Endpoint& shard, std::uint32_t job) const {
  std::set<std::uint32_t> jobs;
  bool elsewhere = false;
  for (const auto& [key, joins] : joins_) {
    const auto& [at, joined, place] = key;
    if (at == shard) jobs.insert(joined);
    elsewhere |= joined == job;
  }
  if (jobs.contains(job)) return ", where a JOIN of that job is, but for another place of its pool";
  if (elsewhere) return ", and the job's JOINs before it in the trace are all to other shards";
  if (jobs.empty()) {
    return ", and no JOIN is before it in the trace: begin to record before the ranks start";
  }
  std::string named;
  for (const std::uint32_t joined : jobs) {
    named += (named.empty() ? "" : ", ") + std::to_string(joined);
  }
  return ", where before it in the trace the ranks of no job but " + named +
         " join: its job number is damaged, or that job's ranks started before the recording";
}

TraceSession& TraceSurvey::session(const TracePacket& packet, const Header& header,
                                   const proto::Endpoint& shard,
                                   std::optional<std::uint16_t> place) {
  if (const auto index = session_of(shard, header)) return sessions_[*index];
  const auto refuse = [&](const std::string& why) {
    throw TraceError(name_ + ": " + to_string(packet.place) + " is " +
                     std::string(to_string(header.type)) + " of job " +
                     std::to_string(header.job.value()) + " epoch " +
                     std::to_string(header.epoch.value()) + " at " + proto::to_string(shard) + why);
  };
  std::vector<PlaceKey> candidates;
  for (const auto& [key, joins] : joins_) {
    const auto& [at, job, joined_place] = key;
    if (at == shard && job == header.job.value() && place.value_or(joined_place) == joined_place) {
      candidates.push_back(key);
    }
  }
  if (candidates.empty()) refuse(why_unknown(shard, header.job.value()));
  if (candidates.size() > 1) {
    refuse(
        ", where two places of its pool have joined, and no WELCOME tells which: record both "
        "directions");
  }
  const TraceSession::Joins& joins = joins_[candidates.front()];
  const std::size_t index = sessions_.size();
  sessions_.emplace_back(header.job.value(), header.epoch.value(), shard, joins, packet.place);
  by_epoch_[{shard, header.job.value(), header.epoch.value()}] = index;
  if (std::ranges::any_of(joins, [](const auto& join) { return join.datagram.empty(); })) {
    open_[candidates.front()].push_back(index);
  }
  if (std::ranges::find(shards_, shard) == shards_.end()) shards_.push_back(shard);
  return sessions_.back();
}

std::size_t TraceSurvey::shard_index(const proto::Endpoint& shard) const {
  return static_cast<std::size_t>(std::ranges::find(shards_, shard) - shards_.begin());
}

RecordedResults TraceSurvey::recorded() const {
  RecordedResults sum;
  for (const TraceSession& session : sessions_) {
    sum.right += session.recorded().right;
    sum.wrong += session.recorded().wrong;
    sum.unchecked += session.recorded().unchecked;
  }
  return sum;
}

std::uint64_t TraceSurvey::complete_chunks() const {
  std::uint64_t sum = 0;
  for (const TraceSession& session : sessions_) sum += session.complete_chunks();
  return sum;
}

}  // namespace natagg::tools
