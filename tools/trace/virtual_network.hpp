// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A switch of virtual time between an aggregator and its workers: every host has a link of a given
// rate, and datagrams arrive later, twice, out of order or not at all, as a seed decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <span>
#include <vector>

#include "proto/endpoint.hpp"

namespace natagg::tools {

struct VirtualNetworkOptions {
  std::uint64_t seed = 1;
  double loss = 0;         // probability, each datagram
  double duplication = 0;  // of a second copy
  double reordering = 0;   // of being overtaken
  double gigabits = 10;    // a second, of each host's link, each way
};

struct VirtualDatagram {
  proto::Endpoint from;
  proto::Endpoint to;
  std::vector<std::byte> bytes;
};

class VirtualNetwork {
 public:
  explicit VirtualNetwork(const VirtualNetworkOptions& options)
      : options_(options), random_(options.seed) {}

  void send(const proto::Endpoint& from, const proto::Endpoint& to,
            std::span<const std::byte> bytes, std::int64_t now);

  /// When the next datagram arrives.
  [[nodiscard]] std::optional<std::int64_t> next_arrival() const {
    return flights_.empty() ? std::nullopt : std::optional(flights_.top().arrival);
  }
  /// The one that arrives next; there must be one.
  [[nodiscard]] VirtualDatagram take();

 private:
  struct Flight {
    std::int64_t arrival;
    std::uint64_t order;  // of equal times
    VirtualDatagram datagram;
    bool operator>(const Flight& other) const {
      return arrival != other.arrival ? arrival > other.arrival : order > other.order;
    }
  };

  [[nodiscard]] bool chance(double probability);
  void launch(std::int64_t arrival, const VirtualDatagram& datagram);

  VirtualNetworkOptions options_;
  std::mt19937_64 random_;
  std::map<std::uint32_t, std::int64_t> link_free_;  // by address: when it can send again
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  std::uint64_t order_ = 0;
};

}  // namespace natagg::tools
