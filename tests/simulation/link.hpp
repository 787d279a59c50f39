// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A host's cable, which carries so many bits a second each way. What leaves a host waits in the
// host until the cable is free; what arrives waits in the switch, whose queue is bounded and drops
// what does not fit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace natagg::simulation {

struct LinkConfig {
  std::int64_t bits_per_second = 0;  // 0: any
  std::size_t queue = 1'000;         // packets that wait in the switch
  std::size_t mark = SIZE_MAX;       // ... beyond which they are marked
};

class Link {
 public:
  using Time = std::int64_t;  // virtual nanoseconds

  Link() = default;
  explicit Link(const LinkConfig& config) : config_(config) {}

  /// When a datagram that the host sends `now` has left it.
  Time leave(std::size_t datagram_bytes, Time now) {
    up_free_ = std::max(up_free_, now) + duration(datagram_bytes);
    return up_free_;
  }

  struct Arrival {
    Time time;
    bool marked;
  };

  /// How a datagram that reaches the switch `now` reaches the host; nothing where it is dropped.
  /// Packets are taken to be of one size, as most of natagg's are.
  std::optional<Arrival> arrive(std::size_t datagram_bytes, Time now) {
    const Time takes = duration(datagram_bytes);
    const Time waits = std::max<Time>(down_free_ - now, 0);
    const std::size_t queue = takes > 0 ? static_cast<std::size_t>(waits / takes) : 0;
    if (queue > config_.queue) return std::nullopt;
    down_free_ = std::max(down_free_, now) + takes;
    return Arrival{down_free_, queue > config_.mark};
  }

 private:
  /// Ethernet adds 38 bytes to each IP packet, with preamble and gap; IP and UDP 28.
  [[nodiscard]] Time duration(std::size_t datagram_bytes) const {
    constexpr std::size_t kOverhead = 38 + 28;
    if (config_.bits_per_second == 0) return 0;
    return static_cast<Time>((datagram_bytes + kOverhead) * 8) * 1'000'000'000 /
           config_.bits_per_second;
  }

  LinkConfig config_;
  Time up_free_ = 0;
  Time down_free_ = 0;
};

}  // namespace natagg::simulation
