// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One device with a queue each way, from its name to frames and back.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "proto/net/headers.hpp"

namespace natagg::worker {

/// A device that DPDK drives for this worker and no other.
class OwnedDevice {
 public:
  /// Takes the device, unless DPDK has it already. Throws Error.
  explicit OwnedDevice(const std::string& name);
  /// Stops it, and gives it back if it was taken here.
  ~OwnedDevice();
  OwnedDevice(const OwnedDevice&) = delete;
  OwnedDevice& operator=(const OwnedDevice&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  [[nodiscard]] bool find(const std::string& name);
  void own(const std::string& name);
  void give_back() const;

  bool probed_ = false;
  std::uint16_t port_ = RTE_MAX_ETHPORTS;
  rte_eth_dev_owner owner_{};
};

class EthdevPort {
 public:
  /// Configures and starts the device. EAL runs. Throws Error that names the call, the device and a
  /// remedy.
  explicit EthdevPort(const std::string& device);

  [[nodiscard]] net::MacAddress mac() const;
  [[nodiscard]] std::size_t mtu() const { return mtu_; }
  /// Frames that the device keeps until they are taken.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::size_t frame_bytes() const { return buffer_bytes_; }
  /// The device adds UDP's checksum to frames of which mark_for_checksum() was told.
  [[nodiscard]] bool adds_checksums() const { return adds_checksums_; }
  static void mark_for_checksum(rte_mbuf& frame);
  [[nodiscard]] bool link_up() const;
  /// Frames that found no room at the device or in memory.
  [[nodiscard]] std::uint64_t missed() const;

  /// Hears multicast, as far as the device can be told to; of some drivers only the network knows.
  void hear_multicast() const;

  /// An empty frame, or null while all are under way.
  [[nodiscard]] rte_mbuf* make_frame() const { return rte_pktmbuf_alloc(pool_.get()); }
  /// Takes the frames that have come. The caller frees them.
  [[nodiscard]] std::size_t take(std::span<rte_mbuf*> frames) const;
  /// How many of `frames`, from the first, the device has now.
  [[nodiscard]] std::size_t give(std::span<rte_mbuf*> frames) const;

 private:
  void configure(const std::string& device);
  void make_pool(const std::string& device, int socket);
  void set_up_queues(const std::string& device, const rte_eth_dev_info& info);

  struct FreePool {
    void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
  };

  std::unique_ptr<rte_mempool, FreePool> pool_;  // before the device, which holds frames of it
  OwnedDevice device_;
  std::size_t mtu_ = 0;
  std::size_t capacity_ = 0;
  std::size_t buffer_bytes_ = 0;
  std::uint16_t rx_descriptors_ = 0;
  std::uint16_t tx_descriptors_ = 0;
  bool adds_checksums_ = false;
};

}  // namespace natagg::worker
