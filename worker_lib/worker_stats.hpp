// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a worker counts: of each lane, and of all together.
#pragma once

#include <cstddef>

#include "worker_lib/core/stream.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

struct WorkerStats {
  StreamStats stream;
  TransportStats transport;
  std::size_t receive_buffer_bytes = 0;
  std::size_t in_flight = 0;
  std::size_t mtu = 0;
  std::size_t groups = 0;  // multicast groups listened to
  std::size_t io_threads = 1;
};

/// Takes another lane in: counters, buffers and what may be in flight are added up; the round trip
/// is the largest of the lanes', the window the least.
void add(WorkerStats& sum, const WorkerStats& lane);

}  // namespace natagg::worker
