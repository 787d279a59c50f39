// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/invariants.hpp"

#include <algorithm>

#include "proto/serial.hpp"

namespace natagg::simulation {
namespace {

constexpr std::size_t kMostViolations = 20;  // one broken rule breaks at every step

// A member can have results of the last two windows of chunks that were opened, and asks for none
// of before.
constexpr std::uint32_t kWindowsKept = 4;

}  // namespace

void Invariants::expect_worker(std::uint32_t job, std::uint16_t world, std::uint16_t window,
                               bool leaves_behind) {
  jobs_.insert(job);
  if (leaves_behind) leaving_behind_.insert(job);
  largest_world_ = std::max(largest_world_, world);
  largest_window_ = std::max(largest_window_, window);
}

void Invariants::after_step(const proto::Endpoint& shard, const aggregator::ShardConfig& config,
                            const aggregator::Shard::Usage& usage,
                            std::span<const aggregator::Outgoing> outgoing) {
  const std::size_t needed = jobs_.size() * places_;
  const std::size_t window = std::min(config.max_window, largest_window_);
  if (usage.jobs > std::min<std::size_t>(config.max_jobs, needed) ||
      usage.ready_sessions > usage.jobs || usage.open_slots > usage.ready_sessions * window) {
    violation(shard, "has " + std::to_string(usage.jobs) + " jobs, " +
                         std::to_string(usage.ready_sessions) + " sessions and " +
                         std::to_string(usage.open_slots) + " open slots");
  }
  if (outgoing.size() > aggregator::Outbox::kCapacity) violation(shard, "overruns its outbox");
  for (const aggregator::Outgoing& out : outgoing) {
    if (out.to.size() > largest_world_) violation(shard, "answers more than all ranks");
    const proto::Header header = proto::read_header(out.head);
    if (header.type != proto::Type::kWelcome) continue;
    const auto body = proto::read_body<proto::WelcomeBody>(out.head);
    if (body.state == proto::SessionState::kReady) announced(shard, header, body);
  }
}

void Invariants::announced(const proto::Endpoint& shard, const proto::Header& header,
                           const proto::WelcomeBody& body) {
  Session& session = sessions_[{shard, header.job.value(), header.epoch.value()}];
  if (session.window != 0) return;
  session.window = body.window.value();
  session.first_sequence = body.first_sequence.value();
  session.opened.assign(session.window, -1);
}

Invariants::Session* Invariants::find(const proto::Endpoint& shard, const proto::Header& header) {
  const auto found = sessions_.find({shard, header.job.value(), header.epoch.value()});
  return found == sessions_.end() ? nullptr : &found->second;
}

std::vector<std::int64_t>& Invariants::results_of(Session& session, const proto::Endpoint& worker) {
  std::vector<std::int64_t>& results = session.results[worker];
  if (results.empty()) results.assign(std::size_t{kWindowsKept} * session.window, -1);
  return results;
}

void Invariants::contributed(const proto::Endpoint& shard, const proto::Endpoint& worker,
                             const proto::Header& data) {
  Session* session = find(shard, data);
  if (session == nullptr) return violation(shard, "adds up in a session that it did not announce");
  results_of(*session, worker);
  const std::uint32_t sequence = data.sequence.value();
  std::int64_t& opened = session->opened[sequence % session->window];
  if (opened == sequence) return;
  opened = sequence;
  if (leaving_behind_.contains(data.job.value())) return;
  // The result of two windows ago is no longer kept.
  const std::uint32_t overwritten = sequence - 2 * session->window;
  if (proto::serial_less(overwritten, session->first_sequence)) return;
  for (const auto& [member, results] : session->results) {
    if (results[overwritten % results.size()] == overwritten || !lives_(member)) continue;
    violation(shard, "overwrites the result of chunk " + std::to_string(overwritten) + " which " +
                         to_string(member) + " lacks");
  }
}

void Invariants::answered(const proto::Endpoint& shard, const proto::Endpoint& worker,
                          const proto::Header& result) {
  Session* session = find(shard, result);
  if (session == nullptr) return violation(shard, "is believed about a session of nobody's");
  std::vector<std::int64_t>& results = results_of(*session, worker);
  results[result.sequence.value() % results.size()] = result.sequence.value();
}

void Invariants::violation(const proto::Endpoint& shard, const std::string& text) {
  if (violations_.size() < kMostViolations) violations_.push_back(to_string(shard) + " " + text);
}

}  // namespace natagg::simulation
