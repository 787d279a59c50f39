// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Buffers for frames, sized from what the port needs and what memory there is.
#pragma once

#include <rte_mempool.h>

#include <cstdint>
#include <memory>
#include <string>

#include "aggregator/core/shard.hpp"

namespace natagg::aggregator::io {

inline constexpr std::uint16_t kBurst = 32;       // frames per call of the device
inline constexpr std::uint32_t kRingSize = 2048;  // mbufs on the way to another lcore

/// In the private area of a frame's mbuf while it travels to another lcore. The mbuf then holds
/// the UDP payload alone.
struct HandedOver {
  Peer source;
  bool congested = false;
};

struct PoolNeeds {
  std::uint32_t lcores = 1;
  std::uint32_t ports = 1;
  std::uint32_t received = 0;     // that the devices' receive queues hold
  std::uint32_t sent = 0;         // that their transmit queues hold
  std::uint32_t outboxes = 0;     // queues that other lcores send through
  std::uint32_t frame_bytes = 0;  // of the longest frame, as the driver counts it
  bool kept = false;              // a device does not give back what its queues hold at its end
};

class Pools {
 public:
  /// On NUMA node `socket`. Takes fewer buffers than needed, with a warning, rather than fail;
  /// throws std::runtime_error with a remedy when there is not even the minimum.
  Pools(const PoolNeeds& needs, int socket);
  /// Warns of buffers that were not given back but should be.
  ~Pools();
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  [[nodiscard]] rte_mempool* frames() const { return frames_.get(); }
  /// Small buffers for the headers of frames that share one payload.
  [[nodiscard]] rte_mempool* headers() const { return headers_.get(); }

 private:
  struct Free {
    void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
  };
  using Pool = std::unique_ptr<rte_mempool, Free>;

  bool kept_;
  Pool frames_;
  Pool headers_;
};

}  // namespace natagg::aggregator::io
