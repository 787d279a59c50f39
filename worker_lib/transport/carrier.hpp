// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The transport that a worker's options ask for, and what it can carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "worker_lib/options.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

struct Carrier {
  std::unique_ptr<Transport> transport;
  proto::Endpoint local;      // of this end
  std::size_t mtu = 0;        // bytes of IPv4 packets towards the aggregators
  std::size_t in_flight = 0;  // packets under way that it surely keeps
  std::size_t receive_buffer_bytes = 0;
  bool segmentation = false;  // several datagrams can leave as one packet
};

/// `identity` is random. Throws Error.
[[nodiscard]] Carrier make_carrier(const WorkerConfig& config, std::uint64_t identity);

}  // namespace natagg::worker
