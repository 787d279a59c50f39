// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// All network devices of the daemon, and the buffers that they share.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "aggregator/io/interrupt_gate.hpp"
#include "aggregator/io/pools.hpp"
#include "aggregator/io/port.hpp"

namespace natagg::aggregator::io {

class Ports {
 public:
  /// Brings up every device that EAL has found and that no other device owns. `mtu` 0 means each
  /// one's own. Throws std::runtime_error that names the call, the device and a remedy.
  Ports(std::uint32_t mtu, unsigned lcores);
  ~Ports();
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  /// In the order of their numbers, Port::number(); at least one.
  [[nodiscard]] const std::deque<Port>& all() const { return ports_; }
  [[nodiscard]] const Pools& pools() const { return *pools_; }
  /// That lcores pass for each use of a device; null when no device needs one.
  [[nodiscard]] InterruptGate* gate() const { return gate_.get(); }
  /// Of the port with the longest packets.
  [[nodiscard]] std::uint32_t mtu() const;

 private:
  std::unique_ptr<Pools> pools_;  // outlives the devices, which hold buffers
  std::unique_ptr<InterruptGate> gate_;
  std::deque<Port> ports_;
};

}  // namespace natagg::aggregator::io
