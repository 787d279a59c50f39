// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A network of virtual time: datagrams go in and come out later, twice, in another order, or not
// at all, as a seed decides. The same seed and the same calls give the same run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "proto/endpoint.hpp"
#include "simulation/link.hpp"
#include "simulation/random.hpp"

namespace natagg::simulation {

/// Virtual nanoseconds.
using Time = std::int64_t;
inline constexpr Time kNever = INT64_MAX;
inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;

struct NetworkConfig {
  double loss = 0;                        // probability, each datagram and receiver
  double duplication = 0;                 // probability of a second copy
  double reordering = 0;                  // probability of being overtaken
  double corruption = 0;                  // probability of bytes that no checksum missed
  Time delay = 20 * kMicrosecond;         // one way
  Time jitter = 10 * kMicrosecond;        // at most, on top; keeps the order of a path
  Time reorder_delay = 2 * kMillisecond;  // at most, on top, of a datagram that is overtaken
  bool multicast = true;                  // false: the switches drop it

  bool operator==(const NetworkConfig&) const = default;
};

struct Packet {
  proto::Endpoint from;
  proto::Endpoint to;  // the receiver, also where the datagram was sent to a group
  std::vector<std::byte> datagram;
  bool congested = false;  // marked on the way
};

struct NetworkStats {
  std::uint64_t sent = 0;
  std::uint64_t multicast = 0;  // of those, to a group
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t oversized = 0;   // vanished, because a path cannot carry them
  std::uint64_t queue_full = 0;  // dropped before a slow link
};

class Network {
 public:
  /// Writes one line a datagram to `trace` unless it is null.
  Network(const NetworkConfig& config, std::uint64_t seed, std::ostream* trace);

  /// Faults from now on.
  void configure(const NetworkConfig& config) { config_ = config; }
  [[nodiscard]] const NetworkConfig& config() const { return config_; }

  /// Bytes of IP packet that the path to and from a host carries; 9000 unless set.
  void set_path_mtu(const proto::Endpoint& host, std::size_t mtu) { path_mtu_[host] = mtu; }

  /// The cable of the host of that address; of any speed unless set.
  void set_link(std::uint32_t address, const LinkConfig& config) { links_[address] = Link(config); }
  [[nodiscard]] const Link& link(std::uint32_t address) { return links_[address]; }

  /// What the host of that address sends as one packet, to be cut up on its way, is not any more:
  /// it arrives at nobody.
  void leave_whole(std::uint32_t address) { whole_.insert(address); }
  [[nodiscard]] bool cuts_up(std::uint32_t address) const { return !whole_.contains(address); }

  /// Nothing gets through any more from one address to the other; heal() ends that.
  void cut(std::uint32_t from, std::uint32_t to) { cuts_.insert({from, to}); }
  void cut_both_ways(std::uint32_t one, std::uint32_t other) {
    cut(one, other);
    cut(other, one);
  }
  void heal() { cuts_.clear(); }

  /// A host that no multicast reaches, though it subscribes.
  void deafen(const proto::Endpoint& host) { deaf_.insert(host); }

  void subscribe(const proto::Endpoint& group, const proto::Endpoint& host);

  /// `to` is a host or a group.
  void send(const proto::Endpoint& from, const proto::Endpoint& to,
            std::span<const std::byte> datagram, Time now);

  /// When the next datagram arrives, at a host or on the way there; kNever when none is under way.
  [[nodiscard]] Time next_arrival() const;

  /// The next datagram to arrive, if it does so at a host.
  [[nodiscard]] std::optional<Packet> take();

  [[nodiscard]] const NetworkStats& stats() const { return stats_; }

  /// Broken promises: datagrams that exceed a path's MTU although they probe nothing.
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

  /// Keeps a copy of everything sent, for tests that replay it.
  void record(bool on) { recording_ = on; }
  [[nodiscard]] const std::vector<Packet>& recorded() const { return recorded_; }

  /// What a switch sees at some hosts' ports: what they send, and what arrives for them.
  struct Tap {
    std::function<bool(const proto::Endpoint&)> at;
    std::function<void(Time, const proto::Endpoint& from, const proto::Endpoint& to,
                       std::span<const std::byte> datagram)>
        see;
  };
  void add_tap(Tap tap) { taps_.push_back(std::move(tap)); }

 private:
  struct Flight {
    Time arrival;
    std::uint64_t order;  // breaks ties, so that equal times keep one order everywhere
    std::size_t packet;   // index in packets_
    bool at_switch;       // else at the host
    bool operator>(const Flight& other) const {
      return arrival != other.arrival ? arrival > other.arrival : order > other.order;
    }
  };

  void send_to_host(const proto::Endpoint& from, const proto::Endpoint& to,
                    std::span<const std::byte> datagram, Time now);
  void corrupt(std::vector<std::byte>& datagram);
  void launch(const proto::Endpoint& from, const proto::Endpoint& to,
              std::span<const std::byte> datagram, Time arrival);
  [[nodiscard]] bool passes_switch(const Flight& flight);
  [[nodiscard]] std::size_t path_mtu(const proto::Endpoint& host) const;
  [[nodiscard]] Time in_order_arrival(const proto::Endpoint& from, const proto::Endpoint& to,
                                      Time now);
  void trace(const proto::Endpoint& from, const proto::Endpoint& to,
             std::span<const std::byte> datagram, Time now, const char* fate,
             Time arrival = kNever);

  NetworkConfig config_;
  Random random_;
  std::ostream* trace_;
  std::map<proto::Endpoint, std::size_t> path_mtu_;
  std::map<std::uint32_t, Link> links_;
  std::set<proto::Endpoint> deaf_;
  std::set<std::uint32_t> whole_;  // whose large packets nobody cuts apart
  std::set<std::pair<std::uint32_t, std::uint32_t>> cuts_;
  std::map<proto::Endpoint, std::set<proto::Endpoint>> groups_;
  std::map<std::pair<proto::Endpoint, proto::Endpoint>, Time> last_arrival_;
  std::priority_queue<Flight, std::vector<Flight>, std::greater<>> flights_;
  std::vector<Packet> packets_;    // under way, and reusable ones
  std::vector<std::size_t> free_;  // indices of the reusable ones
  std::uint64_t order_ = 0;
  NetworkStats stats_;
  std::vector<std::string> violations_;
  std::vector<Tap> taps_;
  bool recording_ = false;
  std::vector<Packet> recorded_;
};

/// "HELLO job 1 ..." or why `datagram` is not a natagg packet.
[[nodiscard]] std::string describe(std::span<const std::byte> datagram);

}  // namespace natagg::simulation
