// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The aggregators' MAC addresses, as ARP tells them, and when to ask for them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/endpoint.hpp"
#include "worker_lib/core/time.hpp"
#include "worker_lib/transport/frame.hpp"

namespace natagg::worker {

class Neighbours {
 public:
  /// The hosts of `aggregators`, each once, all unknown.
  explicit Neighbours(std::span<const proto::Endpoint> aggregators);

  /// Null while it is not known.
  [[nodiscard]] const net::MacAddress* find(std::uint32_t address) const;
  [[nodiscard]] bool any_known() const;
  [[nodiscard]] bool all_known() const;

  /// Takes what an ARP packet of any kind says.
  void learn(const Neighbour& neighbour);

  /// A datagram came from there. From the first on, silence is a reason to ask again: another
  /// machine may have taken the address over.
  void hear(std::uint32_t address, Time now);

  /// All may have moved.
  void forget();

  /// Calls `ask` with each address that should be asked for now. Questions become rarer until one
  /// brings news.
  template <typename Ask>
  void ask_when_due(Time now, Ask&& ask) {
    if (now < next_question_) return;
    bool asked = false;
    for (const Entry& entry : entries_) {
      if (entry.mac && !silent(entry, now)) continue;
      ask(entry.address);
      asked = true;
    }
    if (asked) postpone(now);
  }

 private:
  struct Entry {
    std::uint32_t address = 0;
    std::optional<net::MacAddress> mac;
    Time heard = kNever;
  };

  [[nodiscard]] static bool silent(const Entry& entry, Time now);
  void postpone(Time now);

  std::vector<Entry> entries_;
  Time next_question_ = 0;
  Time interval_;
};

}  // namespace natagg::worker
