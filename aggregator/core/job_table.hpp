// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The jobs of one shard and their sessions, and how to find them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/core/session.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

/// A job's place of the pool that is here: at most one session that runs and one that is to follow
/// it. A job has a second one here when this shard stands in for another, whose place moved.
struct Job {
  std::uint32_t id = 0;
  std::uint16_t place = 0;
  std::optional<Session> running;
  std::optional<Session> forming;
};

/// A header for the sender of `request`, about the same job.
[[nodiscard]] proto::Header answer(const proto::Header& request, proto::Type type);

/// A header for all members of a session.
[[nodiscard]] proto::Header session_header(const Job& job, const Session& session,
                                           proto::Type type);

class JobTable {
 public:
  /// For at most `limit`. Throws std::bad_alloc.
  explicit JobTable(std::size_t limit) : limit_(limit) { jobs_.reserve(limit); }

  [[nodiscard]] std::span<const Job> all() const { return jobs_; }
  [[nodiscard]] std::span<Job> all() { return jobs_; }
  [[nodiscard]] bool full() const { return jobs_.size() == limit_; }

  /// The table is not full. Jobs stay where they are until remove_empty().
  Job& add(std::uint32_t id, std::uint16_t place) {
    return jobs_.emplace_back(Job{.id = id, .place = place, .running = {}, .forming = {}});
  }

  /// Of jobs without a session.
  void remove_empty();

  [[nodiscard]] Job* find(std::uint32_t id, std::uint16_t place);

  /// The job that has a session, running or forming, of that epoch.
  [[nodiscard]] Job* find_epoch(std::uint32_t id, std::uint32_t epoch);

  /// Why a new job with these terms cannot be the one of that number which is here already. A new
  /// job has this shard at one place only: another in a JOIN means another list of aggregators.
  [[nodiscard]] std::optional<Refusal> compare_pool(std::uint32_t id, const Terms& terms, Time now);

  /// The session that the ranks of the forming one have for another place of the pool, if it is
  /// theirs beyond doubt: a rank that has joined here is a member there, from the same address.
  [[nodiscard]] const Session* sister(const Job& job) const;

 private:
  std::size_t limit_;
  std::vector<Job> jobs_;
};

}  // namespace natagg::aggregator
