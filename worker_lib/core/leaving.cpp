// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/leaving.hpp"

#include <algorithm>

namespace natagg::worker {
namespace {

constexpr int kRounds = 4;
constexpr Time kRound = 20'000'000;

proto::LeaveReason reason_of(natagg_status status) {
  switch (status) {
    case NATAGG_TIMED_OUT: return proto::LeaveReason::kTimedOut;
    case NATAGG_RANK_LOST: return proto::LeaveReason::kRankLost;
    case NATAGG_AGGREGATOR_LOST: return proto::LeaveReason::kAggregatorLost;
    case NATAGG_MISMATCH: return proto::LeaveReason::kMismatch;
    case NATAGG_REFUSED: return proto::LeaveReason::kRefused;
    default: return proto::LeaveReason::kClosed;
  }
}

proto::LeaveBody body_of(const Failure& why) {
  proto::LeaveBody body{};
  body.reason = reason_of(why.status);
  body.rank = body.other_rank = proto::Be16{proto::kAggregatorRank};
  if (why.rank >= 0) body.rank = proto::Be16{static_cast<std::uint16_t>(why.rank)};
  if (!why.mismatch) return body;
  body.fingerprint = why.mismatch->fingerprint;
  body.other_fingerprint = why.mismatch->other_fingerprint;
  body.operation = why.mismatch->operation;
  body.other_operation = why.mismatch->other_operation;
  body.other_rank = why.mismatch->other_rank;
  return body;
}

}  // namespace

void Leaving::begin(const Failure& why, Time now) {
  farewells_.clear();
  body_ = body_of(why);
  next_ = 0;
  rounds_left_ = kRounds;
  next_round_ = now;
}

void Leaving::add(const proto::Endpoint& shard, std::uint32_t job, std::uint32_t epoch,
                  std::uint16_t rank) {
  proto::Header header = proto::make_header(proto::Type::kLeave);
  header.job = proto::Be32{job};
  header.epoch = proto::Be32{epoch};
  header.rank = proto::Be16{rank};
  farewells_.push_back({.shard = shard, .datagram = {header, body_}});
}

void Leaving::transmit(Time now, Sink& sink) {
  if (now < next_round_ || done()) return;
  if (rounds_left_ == 0) return farewells_.clear();
  while (next_ < farewells_.size() && !sink.full()) {
    const Farewell& farewell = farewells_[next_++];
    sink.add(farewell.shard, std::as_bytes(std::span(&farewell.datagram, 1)));
  }
  if (next_ < farewells_.size()) return;
  next_ = 0;
  --rounds_left_;
  next_round_ = now + kRound;
}

void Leaving::on_leave(const proto::Endpoint& shard, std::uint32_t epoch) {
  std::erase_if(farewells_, [&](const Farewell& f) {
    return f.shard == shard && f.datagram.header.epoch.value() == epoch;
  });
  next_ = std::min(next_, farewells_.size());
}

}  // namespace natagg::worker
