// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The keys of a fuzzer's jobs, and what was sealed with them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "datagrams.hpp"
#include "proto/authentication.hpp"
#include "proto/endpoint.hpp"

namespace natagg::fuzz {

/// The right key of `job`, or another one. Made once.
[[nodiscard]] const proto::JobKey& job_key(std::uint32_t job, bool right = true);

[[nodiscard]] proto::Secret entropy(std::uint8_t which);

/// A datagram that somebody with the key has made, bit by bit: everything else is forged.
struct Sealed {
  proto::Endpoint by;
  bool taken = false;            // the receiver has accepted it
  std::int64_t taken_at = 0;     // the first time
  std::set<std::uint32_t> in{};  // sessions, by epoch, that took it
};

class Ledger {
 public:
  void add(const Datagram& datagram, const proto::Endpoint& by) {
    sealed_.try_emplace(name(datagram), Sealed{.by = by});
  }

  /// Null for what nobody with the key has made.
  [[nodiscard]] Sealed* find(std::span<const std::byte> datagram) {
    const auto found = sealed_.find(name(datagram));
    return found != sealed_.end() ? &found->second : nullptr;
  }

 private:
  static std::string name(std::span<const std::byte> datagram) {
    return {reinterpret_cast<const char*>(datagram.data()), datagram.size()};
  }

  std::map<std::string, Sealed> sealed_;  // by all its bytes
};

}  // namespace natagg::fuzz
