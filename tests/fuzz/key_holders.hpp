// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The workers of jobs that have keys, as a shard meets them: they seal, and they check what the
// shard has sealed, with the guard of worker_lib.
#pragma once

#include <memory>
#include <utility>

#include "keys.hpp"
#include "worker_lib/core/guard.hpp"

namespace natagg::fuzz {

class KeyHolders {
 public:
  /// Seals as `rank` of `job`, whom `by` is the address of; false leaves what cannot be sealed.
  bool seal(Datagram& datagram, std::uint32_t job, std::uint16_t rank, const proto::Endpoint& by);

  /// HELLO and JOIN as somebody seals them who has another key.
  bool seal_wrongly(Datagram& datagram, std::uint32_t job);

  /// The rank joins anew, as the same process or as another one.
  void renew(std::uint32_t job, std::uint16_t rank, std::uint16_t place);
  void restart(std::uint32_t job, std::uint16_t rank);

  /// What the shard sent to a rank: taken once at most, and never when a bit differs.
  void receive(std::span<const std::byte> datagram, std::uint16_t rank);

  /// Null for what nobody with the key has sealed.
  [[nodiscard]] Sealed* find(std::span<const std::byte> datagram) { return ledger_.find(datagram); }

 private:
  struct Holder {
    Holder(std::uint32_t job, std::uint16_t rank, std::uint8_t life, bool right);
    worker::StreamConfig config;
    worker::Guard guard;
  };

  Holder& find_holder(std::uint32_t job, std::uint16_t rank);
  static bool seal(Datagram& datagram, Holder& holder);

  std::map<std::pair<std::uint32_t, std::uint16_t>, std::unique_ptr<Holder>> holders_;
  std::uint8_t lives_ = 0;
  Ledger ledger_;
};

}  // namespace natagg::fuzz
