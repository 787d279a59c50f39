// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Brings the network device up: asks what it can do, takes of that what is useful, and says what
// was taken. Everything is undone by the destructor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "aggregator/io/envelope.hpp"
#include "aggregator/io/headers.hpp"
#include "aggregator/io/pools.hpp"

namespace natagg::aggregator::io {

class Port {
 public:
  /// Uses the first device that EAL has found. `mtu` 0 means the device's own. Throws
  /// std::runtime_error that names the call, the device and a remedy.
  Port(std::uint32_t mtu, unsigned lcores);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  [[nodiscard]] std::uint16_t id() const { return device_.id; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] MacAddress mac() const;
  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }
  [[nodiscard]] int socket() const { return socket_; }
  /// Pairs of queues, at most one a lcore: queue q belongs to lcore number q.
  [[nodiscard]] std::uint16_t queues() const { return queues_; }
  [[nodiscard]] const Pools& pools() const { return *pools_; }
  [[nodiscard]] Offload tx_offload() const { return tx_offload_; }
  [[nodiscard]] bool tx_chains() const { return tx_chains_; }
  [[nodiscard]] bool partial_checksums() const { return partial_checksums_; }

  [[nodiscard]] bool link_up() const;

 private:
  void configure(std::uint32_t wanted_mtu, unsigned lcores);
  void wait_for_link() const;

  /// Stops and closes, also when the port does not come up.
  struct Device {
    std::uint16_t id;
    ~Device();
  };

  std::unique_ptr<Pools> pools_;  // outlives the device, which holds buffers
  Device device_;
  std::string name_;
  std::uint32_t mtu_ = 0;
  int socket_ = 0;
  std::uint16_t queues_ = 1;
  Offload tx_offload_;
  bool tx_chains_ = false;
  bool partial_checksums_ = false;
};

}  // namespace natagg::aggregator::io
