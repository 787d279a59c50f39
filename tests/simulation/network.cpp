// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/network.hpp"

#include <algorithm>
#include <cstdio>

#include "proto/packet.hpp"

namespace natagg::simulation {
namespace {

constexpr std::size_t kDefaultMtu = 9000;

/// HELLO and OFFER find out what a path carries; nothing else may exceed it.
bool probes_path(std::span<const std::byte> datagram) {
  if (proto::validate(datagram, proto::Keys::kSome) != proto::Reject::kNone)
    return true;  // a test's own garbage
  const proto::Type type = proto::read_header(datagram).type;
  return type == proto::Type::kHello || type == proto::Type::kOffer;
}

std::string milliseconds(Time time) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6f", static_cast<double>(time) * 1e-6);
  return text;
}

}  // namespace

Network::Network(const NetworkConfig& config, std::uint64_t seed, std::ostream* trace)
    : config_(config), random_(seed), trace_(trace) {}

void Network::subscribe(const proto::Endpoint& group, const proto::Endpoint& host) {
  groups_[group].insert(host);
}

std::size_t Network::path_mtu(const proto::Endpoint& host) const {
  const auto found = path_mtu_.find(host);
  return found == path_mtu_.end() ? kDefaultMtu : found->second;
}

void Network::send(const proto::Endpoint& from, const proto::Endpoint& to,
                   std::span<const std::byte> datagram, Time now) {
  ++stats_.sent;
  if (recording_) recorded_.push_back({from, to, {datagram.begin(), datagram.end()}});
  if (to.address >> 28 != 0xE) {  // 224.0.0.0/4 is multicast
    send_to_host(from, to, datagram, now);
    return;
  }
  ++stats_.multicast;
  const auto group = groups_.find(to);
  if (!config_.multicast || group == groups_.end()) {
    trace(from, to, datagram, now, "reaches nobody");
    return;
  }
  for (const proto::Endpoint& host : group->second) {
    if (!deaf_.contains(host)) send_to_host(from, host, datagram, now);
  }
}

void Network::send_to_host(const proto::Endpoint& from, const proto::Endpoint& to,
                           std::span<const std::byte> datagram, Time now) {
  if (datagram.size() + proto::kIpUdpBytes > std::min(path_mtu(from), path_mtu(to))) {
    ++stats_.oversized;
    if (!probes_path(datagram)) {
      violations_.push_back("larger than the path's MTU: " + std::to_string(datagram.size()) +
                            " bytes " + describe(datagram));
    }
    trace(from, to, datagram, now, "too large");
    return;
  }
  if (cuts_.contains({from.address, to.address})) {
    ++stats_.lost;
    trace(from, to, datagram, now, "cut off");
    return;
  }
  if (random_.chance(config_.loss)) {
    ++stats_.lost;
    trace(from, to, datagram, now, "lost");
    return;
  }
  const Time arrival = in_order_arrival(from, to, now);
  trace(from, to, datagram, now, "arrives", arrival);
  launch(from, to, datagram, arrival);
  if (random_.chance(config_.duplication)) {
    ++stats_.duplicated;
    const Time copy = now + config_.delay + random_.between(0, config_.reorder_delay);
    trace(from, to, datagram, now, "copy arrives", copy);
    launch(from, to, datagram, copy);
  }
}

Time Network::in_order_arrival(const proto::Endpoint& from, const proto::Endpoint& to, Time now) {
  const Time arrival = now + config_.delay + random_.between(0, config_.jitter);
  if (random_.chance(config_.reordering)) {
    return arrival + random_.between(0, config_.reorder_delay);
  }
  Time& last = last_arrival_[{from, to}];
  last = std::max(last, arrival);
  return last;
}

void Network::launch(const proto::Endpoint& from, const proto::Endpoint& to,
                     std::span<const std::byte> datagram, Time arrival) {
  std::size_t index = packets_.size();
  if (free_.empty()) {
    packets_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  Packet& packet = packets_[index];
  packet.from = from;
  packet.to = to;
  packet.datagram.assign(datagram.begin(), datagram.end());
  flights_.push({arrival, order_++, index});
}

Time Network::next_arrival() const {
  return flights_.empty() ? kNever : flights_.top().arrival;
}

Packet Network::take() {
  const std::size_t index = flights_.top().packet;
  flights_.pop();
  free_.push_back(index);
  return std::move(packets_[index]);
}

void Network::trace(const proto::Endpoint& from, const proto::Endpoint& to,
                    std::span<const std::byte> datagram, Time now, const char* fate, Time arrival) {
  if (trace_ == nullptr) return;
  *trace_ << milliseconds(now) << ' ' << to_string(from) << " > " << to_string(to) << ' '
          << datagram.size() << " B " << describe(datagram) << " [" << fate;
  if (arrival != kNever) *trace_ << ' ' << milliseconds(arrival);
  *trace_ << "]\n";
}

std::string describe(std::span<const std::byte> datagram) {
  const proto::Reject reject = proto::validate(datagram, proto::Keys::kSome);
  if (reject != proto::Reject::kNone) return std::string(proto::to_string(reject));
  return proto::to_string(proto::read_header(datagram));
}

}  // namespace natagg::simulation
