// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/udp_ranks.hpp"

#include <cstring>
#include <optional>
#include <random>

#include "tools/trace/ticks.hpp"

namespace natagg::tools {
namespace {

using proto::Type;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kRepeat = 50 * kMillisecond;       // HELLO, JOIN
constexpr std::int64_t kPatience = 5'000 * kMillisecond;  // for an answer to them
constexpr std::int64_t kHeartbeat = 300 * kMillisecond;
constexpr int kLeaves = 4;
constexpr std::int64_t kLeaveInterval = 20 * kMillisecond;

/// Reasons that pass when the jobs of an earlier replay are gone.
bool may_pass(proto::RefuseReason reason) {
  using enum proto::RefuseReason;
  return reason == kRankTaken || reason == kJobRunning || reason == kTooManyJobs ||
         reason == kNoMemory;
}

}  // namespace

UdpRanks::UdpRanks(const TraceSurvey& survey, const UdpTarget& target, RankNetwork& network)
    : survey_(survey),
      target_(target),
      network_(network),
      next_instance_(std::uint64_t{std::random_device{}()} << 32 | 1),
      ways_(survey.sessions().size()) {
  ask_for_shards();
  network_.close();
}

void UdpRanks::ask_for_shards() {
  const std::size_t way = network_.open(target_.aggregator);
  std::size_t values = 0;
  std::uint16_t window = 0;
  for (const TraceSession& session : survey_.sessions()) {
    values = std::max<std::size_t>(values, session.values());
    window = std::max(window, session.window());
  }
  std::vector<std::byte> hello(proto::datagram_size(values));
  proto::Header header = proto::make_header(Type::kHello);
  header.job = proto::Be32{target_.first_job};
  const proto::HelloBody body{.instance = proto::Be64{next_instance_}};
  std::memcpy(hello.data(), &header, sizeof(header));
  std::memcpy(hello.data() + sizeof(header), &body, sizeof(body));

  const std::string who = "the aggregator at " + proto::to_string(target_.aggregator);
  std::optional<proto::OfferBody> offer;
  const OnDatagram on_datagram = [&](std::span<const std::byte> datagram) {
    if (proto::validate(datagram) == proto::Reject::kNone &&
        proto::read_header(datagram).type == Type::kOffer) {
      offer = proto::read_body<proto::OfferBody>(datagram);
    }
  };
  const std::int64_t deadline = monotonic_ns() + kPatience;
  for (std::int64_t next = 0; !offer && monotonic_ns() < deadline;) {
    if (monotonic_ns() >= next) {
      network_.send(way, hello);
      next = monotonic_ns() + kRepeat;
    }
    receive(kMillisecond, on_datagram);
  }
  if (!offer) {
    throw TraceError(who + " does not answer HELLO of " + std::to_string(hello.size()) + " bytes");
  }
  shards_ = std::max<std::uint16_t>(offer->shards.value(), 1);
  if (offer->max_values.value() < values || offer->max_window.value() < window) {
    throw TraceError(who + " takes " + std::to_string(offer->max_values.value()) +
                     " values a packet and a window of " +
                     std::to_string(offer->max_window.value()) + ", the trace has " +
                     std::to_string(values) + " and " + std::to_string(window));
  }
}

proto::Endpoint UdpRanks::live_shard(const TraceSession& session) const {
  const std::size_t index = survey_.shard_index(session.shard()) % shards_;
  return {target_.aggregator.address, static_cast<std::uint16_t>(target_.aggregator.port + index)};
}

void UdpRanks::form(std::size_t index, std::uint32_t job, ReplayLedger& ledger,
                    const OnDatagram& others) {
  const TraceSession& session = survey_.sessions()[index];
  const proto::Endpoint shard = live_shard(session);
  std::vector<std::vector<std::byte>> joins;
  for (std::uint16_t rank = 0; rank < session.world(); ++rank) {
    ways_[index].push_back(network_.open(shard));
    joins.push_back(ledger.join(index, rank, job, next_instance_++));
  }
  std::string refusal = "it does not become ready";
  bool final = false;
  const OnDatagram on_datagram = [&](std::span<const std::byte> datagram) {
    if (proto::validate(datagram) != proto::Reject::kNone) return others(datagram);
    const proto::Header header = proto::read_header(datagram);
    if (header.job.value() != job) return others(datagram);
    if (header.type == Type::kRefuse) {
      const auto reason = proto::read_body<proto::RefuseBody>(datagram).reason;
      refusal = to_string(reason);
      final = !may_pass(reason);
    } else if (header.type == Type::kWelcome) {
      const auto body = proto::read_body<proto::WelcomeBody>(datagram);
      if (body.state != proto::SessionState::kReady) return;
      ledger.set_live(index, {.job = job,
                              .epoch = header.epoch.value(),
                              .first_sequence = body.first_sequence.value()});
    }
  };
  const std::int64_t deadline = monotonic_ns() + kPatience;
  for (std::int64_t next = 0; !ledger.live(index) && !final && monotonic_ns() < deadline;) {
    if (monotonic_ns() >= next) {
      for (std::uint16_t rank = 0; rank < session.world(); ++rank) send(index, rank, joins[rank]);
      next = monotonic_ns() + kRepeat;
    }
    receive(kMillisecond, on_datagram);
  }
  if (ledger.live(index)) return;
  throw TraceError(session.describe() + " cannot be formed at " + proto::to_string(shard) + ": " +
                   refusal);
}

void UdpRanks::send(std::size_t session, std::uint16_t rank, std::span<const std::byte> datagram) {
  network_.send(ways_[session][rank], datagram);
}

void UdpRanks::heartbeat(const ReplayLedger& ledger) {
  if (monotonic_ns() - last_heartbeat_ < kHeartbeat) return;
  last_heartbeat_ = monotonic_ns();
  for (std::size_t session = 0; session < ways_.size(); ++session) {
    if (!ledger.live(session)) continue;
    for (std::uint16_t rank = 0; rank < ways_[session].size(); ++rank) {
      send(session, rank, ledger.control(session, rank, Type::kHeartbeat));
    }
  }
}

void UdpRanks::leave(const ReplayLedger& ledger) {
  // Repeated rather than waited for: what is lost all the same, the member time-out ends.
  for (int i = 0; i < kLeaves; ++i) {
    for (std::size_t session = 0; session < ways_.size(); ++session) {
      if (!ledger.live(session)) continue;
      for (std::uint16_t rank = 0; rank < ways_[session].size(); ++rank) {
        send(session, rank, ledger.control(session, rank, Type::kLeave));
      }
    }
    receive(kLeaveInterval, [](std::span<const std::byte>) {});
  }
  for (auto& ways : ways_) ways.clear();
  network_.close();
}

}  // namespace natagg::tools
