// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Brings a network device up: asks what it can do, takes of that what is useful, and says what
// was taken. Everything is undone by the destructor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "aggregator/io/envelope.hpp"
#include "aggregator/io/pools.hpp"
#include "proto/net/headers.hpp"

namespace natagg::aggregator::io {

class Port {
 public:
  /// Configures device `id`, the daemon's `number`-th from 0. `mtu` 0 means the device's own.
  /// Throws std::runtime_error that names the call, the device and a remedy.
  Port(std::uint16_t id, std::uint16_t number, std::uint32_t mtu, unsigned lcores);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// Adds the buffers that this port needs.
  void add_needs(PoolNeeds& needs) const;
  /// Starts the device with buffers from `pools`, which outlive it.
  void start(const Pools& pools);

  [[nodiscard]] std::uint16_t id() const { return device_.id; }
  [[nodiscard]] std::uint16_t number() const { return number_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] MacAddress mac() const;
  [[nodiscard]] std::uint32_t mtu() const { return mtu_; }
  [[nodiscard]] int socket() const { return socket_; }
  /// Pairs of queues, at most one a lcore.
  [[nodiscard]] std::uint16_t queues() const { return queues_; }
  /// The queue of lcore number `lcore`, if it has one. Ports with one queue spread over the lcores.
  [[nodiscard]] std::optional<std::uint16_t> queue_of(std::uint16_t lcore) const;
  /// Of buffers for the headers of frames that share a payload.
  [[nodiscard]] rte_mempool* header_pool() const { return header_pool_; }
  [[nodiscard]] Offload tx_offload() const { return tx_offload_; }
  [[nodiscard]] bool tx_chains() const { return tx_chains_; }
  [[nodiscard]] bool partial_checksums() const { return partial_checksums_; }
  /// There is one peer at its other end, which takes everything by unicast.
  [[nodiscard]] bool shared_memory() const { return shared_memory_; }

  [[nodiscard]] bool link_up() const;

 private:
  void configure(std::uint32_t wanted_mtu);
  void set_up_queues(rte_mempool* frames) const;
  void wait_for_link() const;

  /// Stops and closes, also when the port does not come up.
  struct Device {
    std::uint16_t id;
    ~Device();
  };

  Device device_;
  std::uint16_t number_;
  unsigned lcores_;
  std::string name_;
  std::uint32_t mtu_ = 0;
  int socket_ = 0;
  std::uint16_t queues_ = 1;
  std::uint16_t rx_descriptors_ = 0;  // a queue
  std::uint16_t tx_descriptors_ = 0;
  std::uint32_t buffer_bytes_ = 0;  // of a received frame, as the driver counts it
  rte_mempool* header_pool_ = nullptr;
  Offload tx_offload_;
  bool tx_chains_ = false;
  bool partial_checksums_ = false;
  bool shared_memory_ = false;
  bool keeps_buffers_ = false;
};

}  // namespace natagg::aggregator::io
