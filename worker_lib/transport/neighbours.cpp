// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/neighbours.hpp"

#include <algorithm>

namespace natagg::worker {
namespace {

constexpr Time kShortestInterval = 10'000'000;
constexpr Time kLongestInterval = 1'000'000'000;
constexpr Time kSilence = 1'000'000'000;

}  // namespace

Neighbours::Neighbours(std::span<const proto::Endpoint> aggregators)
    : interval_(kShortestInterval) {
  for (const proto::Endpoint& aggregator : aggregators) {
    const auto same = [&](const Entry& entry) { return entry.address == aggregator.address; };
    if (std::ranges::none_of(entries_, same)) {
      entries_.push_back({.address = aggregator.address, .mac = std::nullopt});
    }
  }
}

const net::MacAddress* Neighbours::find(std::uint32_t address) const {
  for (const Entry& entry : entries_) {
    if (entry.address == address && entry.mac) return &*entry.mac;
  }
  return nullptr;
}

bool Neighbours::any_known() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) { return entry.mac.has_value(); });
}

bool Neighbours::all_known() const {
  return std::ranges::all_of(entries_, [](const Entry& entry) { return entry.mac.has_value(); });
}

void Neighbours::learn(const Neighbour& neighbour) {
  for (Entry& entry : entries_) {
    if (entry.address != neighbour.address || entry.mac == neighbour.mac) continue;
    entry.mac = neighbour.mac;
    interval_ = kShortestInterval;
  }
}

void Neighbours::hear(std::uint32_t address, Time now) {
  for (Entry& entry : entries_) {
    if (entry.address == address) entry.heard = now;
  }
}

void Neighbours::forget() {
  for (Entry& entry : entries_) entry.mac.reset();
  next_question_ = 0;
  interval_ = kShortestInterval;
}

bool Neighbours::silent(const Entry& entry, Time now) {
  return entry.heard != kNever && now - entry.heard > kSilence;
}

void Neighbours::postpone(Time now) {
  next_question_ = now + interval_;
  interval_ = std::min(2 * interval_, kLongestInterval);
}

}  // namespace natagg::worker
