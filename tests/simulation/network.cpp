// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/network.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "proto/packet.hpp"

namespace natagg::simulation {
namespace {

constexpr std::size_t kDefaultMtu = 9000;

/// A part of a datagram: offset and size.
struct Part {
  std::size_t offset;
  std::size_t size;
};

constexpr Part kMagic{offsetof(proto::Header, magic), sizeof(proto::Header::magic)};
constexpr Part kJob{offsetof(proto::Header, job), sizeof(proto::Header::job)};
constexpr Part kEpoch{offsetof(proto::Header, epoch), sizeof(proto::Header::epoch)};
constexpr Part kRank{offsetof(proto::Header, rank), sizeof(proto::Header::rank)};
constexpr Part kSlot{offsetof(proto::Header, slot), sizeof(proto::Header::slot)};
constexpr Part kOperation{offsetof(proto::Header, operation), sizeof(proto::Header::operation)};
constexpr Part kElement{offsetof(proto::Header, element), sizeof(proto::Header::element)};
constexpr Part kFingerprint{offsetof(proto::Header, fingerprint),
                            sizeof(proto::Header::fingerprint)};
constexpr Part kCount{offsetof(proto::Header, count), sizeof(proto::Header::count)};
constexpr Part kShift{offsetof(proto::Header, shift), sizeof(proto::Header::shift)};

/// What may be altered although a checksum misses it. A datagram that a checksum catches is lost,
/// which is another fault. Where a MAC covers the packet, any byte; elsewhere only what its
/// receiver checks: an altered value of DATA is summed up by anybody's leave.
Part vulnerable_part(std::span<const std::byte> datagram, Random& random) {
  if (proto::validate(datagram, proto::Keys::kSome) != proto::Reject::kNone) return kMagic;
  const proto::Header header = proto::read_header(datagram);
  if ((header.flags & proto::kFlagAuthenticated) != 0) return {0, datagram.size()};
  switch (header.type) {
    case proto::Type::kData:
      return random.pick({kMagic, kJob, kEpoch, kRank, kSlot, kCount, kShift});
    case proto::Type::kResult:
    case proto::Type::kPartial:
      return random.pick(
          {kMagic, kJob, kEpoch, kOperation, kElement, kFingerprint, kCount, kShift});
    case proto::Type::kHeartbeat:
    case proto::Type::kPending: return random.pick({kMagic, kJob, kEpoch});
    default: return kMagic;
  }
}

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
  for (const Tap& tap : taps_) {
    if (tap.at(from)) tap.see(now, from, to, datagram);
  }
  if (!links_.empty()) now = links_[from.address].leave(datagram.size(), now);
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
  if (random_.chance(config_.corruption)) {
    ++stats_.corrupted;
    std::vector<std::byte> altered(datagram.begin(), datagram.end());
    corrupt(altered);
    launch(from, to, altered, arrival);
  } else {
    launch(from, to, datagram, arrival);
  }
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

/// Changes one to four adjacent bytes.
void Network::corrupt(std::vector<std::byte>& datagram) {
  const Part part = vulnerable_part(datagram, random_);
  if (datagram.size() < part.offset + part.size) return;  // a test's own garbage
  const std::size_t first = random_.below(part.size);
  const std::size_t last = std::min(part.size, first + random_.below(4) + 1);
  for (std::size_t i = first; i < last; ++i) {
    datagram[part.offset + i] ^= static_cast<std::byte>(random_.between(1, 255));
  }
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
  packet.congested = false;
  flights_.push({arrival, order_++, index, !links_.empty()});
}

Time Network::next_arrival() const {
  return flights_.empty() ? kNever : flights_.top().arrival;
}

std::optional<Packet> Network::take() {
  const Flight flight = flights_.top();
  flights_.pop();
  if (flight.at_switch && passes_switch(flight)) return std::nullopt;
  free_.push_back(flight.packet);
  if (flight.at_switch) return std::nullopt;
  const Packet& packet = packets_[flight.packet];
  for (const Tap& tap : taps_) {
    if (tap.at(packet.to)) tap.see(flight.arrival, packet.from, packet.to, packet.datagram);
  }
  return std::move(packets_[flight.packet]);
}

/// Puts the packet on the last link of its way; false where the queue before it is full.
bool Network::passes_switch(const Flight& flight) {
  Packet& packet = packets_[flight.packet];
  const std::optional<Link::Arrival> arrival =
      links_[packet.to.address].arrive(packet.datagram.size(), flight.arrival);
  if (!arrival) {
    ++stats_.queue_full;
    trace(packet.from, packet.to, packet.datagram, flight.arrival, "finds a full queue");
    return false;
  }
  packet.congested = arrival->marked;
  flights_.push({arrival->time, order_++, flight.packet, false});
  return true;
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
