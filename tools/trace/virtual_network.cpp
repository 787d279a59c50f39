// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/virtual_network.hpp"

#include <algorithm>
#include <utility>

namespace natagg::tools {
namespace {

constexpr std::int64_t kDelay = 10'000;          // ns, one way
constexpr std::uint64_t kMostExtra = 1'000'000;  // ns, of what is overtaken or a copy
constexpr std::size_t kFrameOverhead = 28 + 38;  // IP, UDP; Ethernet with preamble and gap

}  // namespace

bool VirtualNetwork::chance(double probability) {
  return probability > 0 && static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

void VirtualNetwork::launch(std::int64_t arrival, const VirtualDatagram& datagram) {
  flights_.push({arrival, order_++, datagram});
}

void VirtualNetwork::send(const proto::Endpoint& from, const proto::Endpoint& to,
                          std::span<const std::byte> bytes, std::int64_t now) {
  std::int64_t& free = link_free_[from.address];
  const auto bits = static_cast<double>((bytes.size() + kFrameOverhead) * 8);
  free = std::max(free, now) + static_cast<std::int64_t>(bits / options_.gigabits);
  if (chance(options_.loss)) return;
  const VirtualDatagram datagram{from, to, {bytes.begin(), bytes.end()}};
  const auto extra = [this] { return static_cast<std::int64_t>(random_() % kMostExtra); };
  launch(free + kDelay + (chance(options_.reordering) ? extra() : 0), datagram);
  if (chance(options_.duplication)) launch(free + kDelay + extra(), datagram);
}

VirtualDatagram VirtualNetwork::take() {
  VirtualDatagram datagram = flights_.top().datagram;
  flights_.pop();
  return datagram;
}

}  // namespace natagg::tools
