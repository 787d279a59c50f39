// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Preallocated buffers and headers for recvmmsg and sendmmsg.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "proto/packet.hpp"
#include "worker_lib/transport/socket.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

/// Datagrams a system call: enough to make its fixed cost small, few enough to stay in the
/// second-level cache with jumbo frames.
inline constexpr std::size_t kBatch = 64;

class ReceiveBatch {
 public:
  ReceiveBatch();

  /// What has arrived at `socket`, up to kBatch datagrams, valid until the next call. Does not
  /// block; errors, which belong to some earlier datagram, read as nothing.
  [[nodiscard]] std::span<const Incoming> receive(int socket);

 private:
  /// The largest datagram of any session, rounded up to cache lines.
  static constexpr std::size_t kBufferBytes =
      (proto::datagram_size(proto::kMaxValues) + 63) / 64 * 64;

  /// For IP_TOS, which holds the mark of congestion.
  static constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int));

  std::vector<std::byte> buffers_;
  std::array<iovec, kBatch> vectors_{};
  std::array<sockaddr_in, kBatch> sources_{};
  alignas(cmsghdr) std::array<std::array<std::byte, kControlBytes>, kBatch> controls_{};
  std::array<mmsghdr, kBatch> messages_{};
  std::array<Incoming, kBatch> incoming_{};
};

class SendBatch {
 public:
  SendBatch();

  /// Points the messages at `datagrams`, of which there are at most kBatch, and returns them.
  [[nodiscard]] std::span<mmsghdr> prepare(std::span<const Outgoing> datagrams);

 private:
  std::array<iovec, kBatch> vectors_{};
  std::array<sockaddr_in, kBatch> destinations_{};
  std::array<mmsghdr, kBatch> messages_{};
};

}  // namespace natagg::worker
