// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/aggregator_host.hpp"

#include <algorithm>

namespace natagg::simulation {
namespace {

constexpr Time kTickInterval = 10 * kMillisecond;

// A shard that still has something to send after so many ticks at one time is spinning. A window
// of chunks may be overdue, each of which takes one.
constexpr int kMaxTicksAtOnce = 1'000;

/// Stands for what the I/O layer knows of a peer; a shard must hand it back.
std::uint64_t link_of(const proto::Endpoint& endpoint) {
  return std::uint64_t{endpoint.address} << 16 | endpoint.port;
}

}  // namespace

AggregatorHost::AggregatorHost(const aggregator::ShardConfig& config, std::uint16_t shards,
                               const proto::Endpoint& first, Time start_time,
                               Invariants& invariants)
    : config_(config),
      shard_count_(shards),
      first_(first),
      next_tick_(start_time),
      invariants_(&invariants) {
  start(config.first_epoch);
}

void AggregatorHost::start(std::uint32_t first_epoch) {
  shards_.clear();
  aggregator::ShardConfig config = config_;
  config.shards = shard_count_;
  config.first_epoch = first_epoch;
  // Of its own in each aggregator and each of its lives.
  config.entropy[0] = static_cast<std::uint8_t>(first_.address);
  config.entropy[1] = lives_++;
  for (config.index = 0; config.index < shard_count_; ++config.index) shards_.emplace_back(config);
}

void AggregatorHost::restart(Time now, std::uint32_t first_epoch) {
  start(first_epoch);
  next_tick_ = now;
  paused_until_ = 0;
  alive_ = true;
}

bool AggregatorHost::owns(const proto::Endpoint& endpoint) const {
  return endpoint.address == first_.address && endpoint.port >= first_.port &&
         endpoint.port - first_.port < shard_count_;
}

void AggregatorHost::deliver(const Packet& packet, Time now, Network& network) {
  if (!alive_ || !owns(packet.to)) return;
  if (now < paused_until_) return inbox_.push_back(packet);
  take(packet, now, network);
}

void AggregatorHost::take(const Packet& packet, Time now, Network& network) {
  const auto shard = static_cast<std::size_t>(packet.to.port - first_.port);
  const aggregator::Peer source{.endpoint = packet.from, .link = link_of(packet.from)};
  const aggregator::Counters& counters = shards_[shard].counters();
  const std::uint64_t before = counters[aggregator::Counter::kContributions];
  const auto outgoing =
      shards_[shard].receive(packet.datagram, source, clock_.read(now), packet.congested);
  if (counters[aggregator::Counter::kContributions] != before) {
    invariants_->contributed(packet.to, packet.from, proto::read_header(packet.datagram));
  }
  send(shard, outgoing, now, network);
}

void AggregatorHost::tick(Time now, Network& network) {
  next_tick_ = clock_.when(clock_.read(now) + kTickInterval, now);
  for (const Packet& packet : inbox_) take(packet, now, network);
  inbox_.clear();
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    int ticks = 0;
    for (;;) {
      const std::span<const aggregator::Outgoing> outgoing = shards_[i].tick(clock_.read(now));
      if (outgoing.empty()) {
        invariants_->after_step(endpoint(i), config_, shards_[i].usage(), outgoing);
        break;
      }
      send(i, outgoing, now, network);
      if (++ticks > kMaxTicksAtOnce) {
        violations_.push_back("shard " + std::to_string(i) + " spins in tick()");
        alive_ = false;
        return;
      }
    }
  }
}

void AggregatorHost::send(std::size_t shard, std::span<const aggregator::Outgoing> outgoing,
                          Time now, Network& network) {
  const proto::Endpoint from = endpoint(shard);
  invariants_->after_step(from, config_, shards_[shard].usage(), outgoing);
  for (const aggregator::Outgoing& out : outgoing) {
    const auto body = std::as_bytes(out.body);
    datagram_.assign(out.head.begin(), out.head.end());
    datagram_.insert(datagram_.end(), body.begin(), body.end());
    datagram_.resize(datagram_.size() + out.padding);
    datagram_.insert(datagram_.end(), out.tail.begin(), out.tail.end());
    for (const aggregator::Peer& peer : out.to) {
      const bool group = peer.endpoint.address >> 28 == 0xE;
      if (!group && peer.link != link_of(peer.endpoint)) {
        violations_.push_back("shard " + std::to_string(shard) + " loses the link of " +
                              to_string(peer.endpoint));
      }
      network.send(from, peer.endpoint, datagram_, now);
    }
  }
}

bool AggregatorHost::idle() const {
  return std::ranges::all_of(shards_, [](const aggregator::Shard& shard) {
    const aggregator::Shard::Usage usage = shard.usage();
    return usage.jobs == 0 && usage.ready_sessions == 0 && usage.open_slots == 0;
  });
}

std::uint64_t AggregatorHost::count(aggregator::Counter counter) const {
  std::uint64_t sum = 0;
  for (const aggregator::Shard& shard : shards_) sum += shard.counters()[counter];
  return sum;
}

}  // namespace natagg::simulation
