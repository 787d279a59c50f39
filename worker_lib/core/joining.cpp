// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/joining.hpp"

#include <algorithm>
#include <cstring>

#include "worker_lib/core/failures.hpp"

namespace natagg::worker {
namespace {

using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::RefuseReason;

constexpr Time kRound = 50'000'000;
constexpr Time kMillisecond = 1'000'000;

std::size_t datagram_size(const StreamConfig& config, std::uint16_t values) {
  if (config.straggler_deadline == 0) return proto::datagram_size(values);
  return proto::partial_datagram_size(values, config.world,
                                      config.key ? proto::Keys::kSome : proto::Keys::kNone);
}

/// Reasons that pass when an earlier run's workers are gone.
bool may_pass(RefuseReason reason) {
  return reason == RefuseReason::kRankTaken || reason == RefuseReason::kJobRunning ||
         reason == RefuseReason::kTooManyJobs || reason == RefuseReason::kNoMemory;
}

/// Reasons that may pass when another job ends.
bool lacks_room(RefuseReason reason) {
  return reason == RefuseReason::kTooManyJobs || reason == RefuseReason::kNoMemory;
}

std::string explain(const proto::RefuseBody& body) {
  const std::uint64_t yours = body.yours.value();
  const std::uint64_t ours = body.ours.value();
  std::string name(to_string(body.reason));
  switch (body.reason) {
    case RefuseReason::kRankTaken: {
      const proto::Endpoint holder{static_cast<std::uint32_t>(ours), 0};
      const std::string address = to_string(holder);
      return "rank " + std::to_string(yours) + " is taken by a worker at " +
             address.substr(0, address.find(':'));
    }
    case RefuseReason::kJobRunning:
      return "the job is running with " + std::to_string(ours) + " other workers";
    case RefuseReason::kTooManyJobs: return "too many jobs: it takes " + std::to_string(ours);
    case RefuseReason::kNoMemory:
    case RefuseReason::kMembers: return name;
    case RefuseReason::kShift:
      return name + ": " + std::to_string(static_cast<std::int64_t>(yours)) + " here, its own is " +
             std::to_string(static_cast<std::int64_t>(ours));
    default:
      return name + ": " + std::to_string(yours) + " here, its own is " + std::to_string(ours);
  }
}

}  // namespace

Joining::Joining(const StreamConfig& config, const proto::Endpoint& shard, const Proposal& proposal,
                 Time now)
    : config_(config),
      session_{.endpoint = shard, .index = proposal.index, .shards = proposal.shards},
      window_(proposal.window),
      datagram_(datagram_size(config, proposal.values)),
      next_join_(now) {
  proto::Header header = proto::make_header(proto::Type::kJoin);
  header.job = Be32{config.job};
  header.rank = Be16{config.rank};
  header.shift = static_cast<std::int8_t>(config.shift);
  if (config.rounding == proto::Rounding::kNearest) header.flags |= proto::kFlagNearest;
  proto::JoinBody body{};
  body.instance = Be64{config.instance};
  body.seed = Be64{config.seed};
  body.world = Be16{config.world};
  body.values = Be16{proposal.values};
  body.window = Be16{proposal.window};
  body.shard = Be16{proposal.index};
  body.shards = Be16{proposal.shards};
  body.rounding = static_cast<std::uint8_t>(config.rounding);
  if (config.straggler_deadline != 0) {
    body.stragglers = Be16{static_cast<std::uint16_t>(config.straggler_deadline / kMillisecond)};
    body.quorum =
        Be16{config.quorum != 0 ? config.quorum : static_cast<std::uint16_t>(config.world / 2 + 1)};
  }
  if (config.values != 0) body.flags |= proto::kJoinValuesPinned;
  std::memcpy(datagram_.data(), &header, sizeof(header));
  std::memcpy(datagram_.data() + sizeof(header), &body, sizeof(body));
}

/// Sets a flag of the JOIN, or clears it.
void Joining::set_flag(proto::JoinFlag flag, bool value) {
  auto body = proto::read_body<proto::JoinBody>(datagram_);
  body.flags = static_cast<std::uint8_t>(value ? body.flags | flag : body.flags & ~flag);
  std::memcpy(datagram_.data() + sizeof(proto::Header), &body, sizeof(body));
}

void Joining::join_again(const proto::Endpoint& shard, const Lost& lost, std::uint16_t moves,
                         Time now) {
  session_.endpoint = shard;
  session_.epoch = 0;
  lost_ = lost;
  moves_ = moves;
  welcome_ = {};
  refusal_.clear();
  missing_ = -1;
  ready_ = false;
  next_join_ = silent_since_ = now;
  welcome_since_ = kNever;

  auto header = proto::read_header(datagram_);
  header.flags = static_cast<std::uint8_t>(header.flags & ~proto::kFlagMulticast);
  auto body = proto::read_body<proto::JoinBody>(datagram_);
  if (lost.values != 0) {
    body.values = Be16{lost.values};
    body.window = Be16{lost.window};
  }
  body.members = Be64{lost.members};
  body.resume = Be32{lost.resume};
  body.held = Be32{lost.held};
  body.moves = Be16{moves};
  std::memcpy(datagram_.data(), &header, sizeof(header));
  std::memcpy(datagram_.data() + sizeof(header), &body, sizeof(body));
  set_flag(proto::kJoinUntouched, lost.untouched);
  set_flag(proto::kJoinWaited, false);
}

void Joining::forgive(Time gap) {
  if (silent_since_ != kNever) silent_since_ += gap;
  if (welcome_since_ != kNever) welcome_since_ += gap;
}

void Joining::transmit(Time now, Sink& sink) {
  if (now < next_join_ || sink.full()) return;
  sink.add(session_.endpoint, datagram_);
  if (silent_since_ == kNever) silent_since_ = now;
  next_join_ = now + kRound;
}

std::optional<std::string> Joining::on_welcome(const proto::Header& header,
                                               const proto::WelcomeBody& body, Time now) {
  // A WELCOME to all has instance 0; its epoch must then be one that answered this worker.
  const bool own = body.instance.value() == config_.instance;
  const bool to_all =
      body.instance.value() == 0 && session_.epoch != 0 && header.epoch.value() == session_.epoch;
  if (ready_ || (!own && !to_all) || header.epoch.value() == 0) return std::nullopt;
  admitted_ = true;
  set_flag(proto::kJoinWaited, false);
  silent_since_ = now;
  if (session_.epoch != header.epoch.value()) welcome_since_ = now;
  moves_ = std::max(moves_, body.moves.value());
  welcome_ = body;
  session_.epoch = header.epoch.value();
  refusal_.clear();
  const std::uint16_t missing = body.missing.value();
  missing_ = missing == proto::kAggregatorRank ? -1 : missing;
  if (body.state != proto::SessionState::kReady) return std::nullopt;
  const bool sane =
      body.values.value() >= proto::kMinValues && body.values.value() <= proto::kMaxValues &&
      body.values.value() % proto::kValuesMultiple == 0 && body.window.value() != 0 &&
      (body.window.value() & (body.window.value() - 1U)) == 0 && body.window.value() <= window_ &&
      datagram_size(config_, body.values.value()) <= datagram_.size();
  if (!sane) return std::nullopt;
  if (lost_ && body.members.value() != lost_->members) {
    return "job " + std::to_string(config_.job) + " has formed anew with other workers";
  }
  if (lost_ && lost_->values != 0 &&
      (body.values.value() != lost_->values || body.window.value() != lost_->window)) {
    return "aggregator " + to_string(session_.endpoint) + " takes " +
           std::to_string(body.values.value()) + " values a packet and a window of " +
           std::to_string(body.window.value()) + ", the job was running with " +
           std::to_string(lost_->values) + " and " + std::to_string(lost_->window);
  }
  ready_ = true;
  next_join_ = kNever;
  members_ = body.members.value();
  session_.first_sequence = body.first_sequence.value();
  session_.values = body.values.value();
  session_.window = body.window.value();
  return std::nullopt;
}

void Joining::on_probe(const proto::Header& header, Time now) {
  if (ready_ || session_.epoch == 0 || header.epoch.value() != session_.epoch) return;
  auto join = proto::read_header(datagram_);
  if ((join.flags & proto::kFlagMulticast) != 0) return;
  join.flags |= proto::kFlagMulticast;
  std::memcpy(datagram_.data(), &join, sizeof(join));
  next_join_ = now;
}

std::optional<std::string> Joining::on_refuse(const proto::RefuseBody& body) {
  const std::uint64_t instance = body.instance.value();
  if (ready_ || (instance != config_.instance && instance != 0)) return std::nullopt;
  if (body.reason == RefuseReason::kKeyRequired) {
    refusal_ = key_refused(session_.endpoint, config_.job, body.reason);
    return refusal_;
  }
  if (lacks_room(body.reason)) admitted_ = false;
  if (body.reason == RefuseReason::kTooManyJobs && !lost_) set_flag(proto::kJoinWaited, true);
  refusal_ = "aggregator " + to_string(session_.endpoint) + " refuses rank " +
             std::to_string(config_.rank) + " of job " + std::to_string(config_.job) + ": " +
             explain(body);
  return may_pass(body.reason) ? std::nullopt : std::optional(refusal_);
}

std::optional<proto::Endpoint> Joining::group() const {
  const std::uint32_t address = welcome_.multicast_address.value();
  if (address == 0) return std::nullopt;
  return proto::Endpoint{address, welcome_.multicast_port.value()};
}

std::string Joining::describe() const {
  if (!refusal_.empty()) return refusal_;
  const std::string shard = to_string(session_.endpoint);
  if (session_.epoch == 0) return "no answer to JOIN from aggregator " + shard;
  if (ready_) return "aggregator " + shard + " is ready";
  if (missing_ < 0) return "aggregator " + shard + " has not called the session ready";
  return "rank " + std::to_string(missing_) + " has not joined at aggregator " + shard + " (" +
         std::to_string(welcome_.joined.value()) + " of " + std::to_string(config_.world) +
         " have)";
}

}  // namespace natagg::worker
