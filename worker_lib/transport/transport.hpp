// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How a worker's datagrams travel: the interface that plain UDP sockets implement, and faster ways
// to do the same. One thread uses a transport, but for wake().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/endpoint.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::worker {

struct Incoming {
  std::span<const std::byte> datagram;
  proto::Endpoint source;
  bool congested = false;  // marked on its way (RFC 3168)
};

struct TransportStats {
  std::uint64_t kernel_drops = 0;   // datagrams that found a receive buffer full
  std::uint64_t send_failures = 0;  // datagrams that were not taken; the stream sends them again
  std::uint64_t injected_losses = 0;
  int last_send_error = 0;       // errno of the latest such failure that says why
  std::uint64_t segmented = 0;   // datagrams sent that left in one packet with others (GSO)
  std::uint64_t merged = 0;      // datagrams received that came in one packet with others (GRO)
  int segmentation_error = 0;    // errno with which the kernel refused to, once and for all
  std::uint64_t recorded = 0;    // packets of either direction, by the option `record`
  std::uint64_t unrecorded = 0;  // that should have been
  int record_error = 0;          // errno of the write that ended the recording
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Listens to a multicast group too. Returns false where that is not possible.
  virtual bool join(const proto::Endpoint& group) = 0;

  /// Sends all of `datagrams`, or counts what could not be sent.
  virtual void send(std::span<const Outgoing> datagrams) = 0;

  /// The next batch of what has arrived, valid until the next call. An empty batch means that
  /// everything has been returned that had arrived when the batches began.
  [[nodiscard]] virtual std::span<const Incoming> receive() = 0;

  /// Sleeps until a datagram arrives, wake() is called or `nanoseconds` have passed. May return
  /// early.
  virtual void wait(Time nanoseconds) = 0;

  /// Ends the current or else the next wait(). Any thread may call it.
  virtual void wake() = 0;

  [[nodiscard]] virtual TransportStats stats() const = 0;
};

}  // namespace natagg::worker
