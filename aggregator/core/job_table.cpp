// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/job_table.hpp"

#include <algorithm>

namespace natagg::aggregator {

using proto::Be16;
using proto::Be32;
using proto::Header;
using proto::RefuseReason;
using proto::Type;

Header answer(const Header& request, Type type) {
  Header header = proto::make_header(type);
  header.job = request.job;
  header.epoch = request.epoch;
  header.rank = request.rank;
  return header;
}

Header session_header(const Job& job, const Session& session, Type type) {
  Header header = proto::make_header(type);
  header.job = Be32{job.id};
  header.epoch = Be32{session.epoch()};
  header.rank = Be16{proto::kAggregatorRank};
  header.shift = session.terms().shift;
  return header;
}

void JobTable::remove_empty() {
  std::erase_if(jobs_, [](const Job& job) { return !job.running && !job.forming; });
}

Job* JobTable::find(std::uint32_t id, std::uint16_t place) {
  const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& candidate) {
    return candidate.id == id && candidate.place == place;
  });
  return job != jobs_.end() ? &*job : nullptr;
}

Job* JobTable::find_epoch(std::uint32_t id, std::uint32_t epoch) {
  const auto is = [&](const std::optional<Session>& session) {
    return session && session->epoch() == epoch;
  };
  const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& candidate) {
    return candidate.id == id && (is(candidate.running) || is(candidate.forming));
  });
  return job != jobs_.end() ? &*job : nullptr;
}

std::optional<Refusal> JobTable::compare_pool(std::uint32_t id, const Terms& terms, Time now) {
  for (Job& job : jobs_) {
    if (job.id != id) continue;
    if (job.running && job.running->whole() && job.running->claimed() == 0) {
      return Refusal{RefuseReason::kJobRunning, terms.world, job.running->terms().world};
    }
    // One that nobody has joined is about to be dropped.
    if (job.forming && !job.forming->deserted() && job.forming->claimed() == 0) {
      const auto difference = job.forming->compare(terms);
      return difference ? std::optional(job.forming->contest(*difference, now)) : std::nullopt;
    }
  }
  return std::nullopt;
}

const Session* JobTable::sister(const Job& job) const {
  const Session& forming = *job.forming;
  for (const Job& other : jobs_) {
    if (other.id != job.id || !other.running || !other.running->whole() ||
        other.running->terms().world != forming.terms().world ||
        other.running->members_digest() != forming.claimed()) {
      continue;
    }
    for (std::uint16_t rank = 0; rank < forming.terms().world; ++rank) {
      const Member& here = forming.member(rank);
      const Member& there = other.running->member(rank);
      if (here.joined && !there.gone && here.instance == there.instance &&
          here.peer.endpoint.address == there.peer.endpoint.address) {
        return &*other.running;
      }
    }
  }
  return nullptr;
}

}  // namespace natagg::aggregator
