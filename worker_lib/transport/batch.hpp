// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Preallocated buffers and headers for recvmmsg and sendmmsg, with which the kernel may take and
// give several datagrams as one packet (UDP_SEGMENT, UDP_GRO; udp(7)).
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "proto/packet.hpp"
#include "worker_lib/transport/lazy_memory.hpp"
#include "worker_lib/transport/socket.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

/// Datagrams a system call: enough to make its fixed cost small, few enough to stay in the
/// second-level cache with jumbo frames.
inline constexpr std::size_t kBatch = 64;

/// Whether datagrams of one peer that arrive as one packet are to be taken as such.
enum class Merging : std::uint8_t { kOff, kOn };

class ReceiveBatch {
 public:
  /// With kOn, sockets may have UDP_GRO set. Throws std::bad_alloc.
  explicit ReceiveBatch(Merging merging);

  /// What has arrived at `socket`, valid until the next call. Does not block; errors, which belong
  /// to some earlier datagram, read as nothing.
  [[nodiscard]] std::span<const Incoming> receive(int socket);

  /// The latest receive() left nothing in the socket, as far as it could see.
  [[nodiscard]] bool drained() const { return drained_; }

  /// Datagrams that arrived in one packet with others.
  [[nodiscard]] std::uint64_t merged() const { return merged_; }

 private:
  /// The largest datagram of any session, rounded up to cache lines.
  static constexpr std::size_t kDatagramBytes =
      (proto::datagram_size(proto::kMaxValues) + 63) / 64 * 64;

  /// A merged packet is as long as IP allows. A page and a line more between two buffers keep them
  /// from sharing a few sets of the caches.
  static constexpr std::size_t kMergedBytes = 65'536 + 4'096 + 64;

  /// Packets a call where they come merged: the same bytes as otherwise.
  static constexpr unsigned kMergedBatch = 8;

  /// For IP_TOS, which holds the mark of congestion, and UDP_GRO, the length of each datagram.
  static constexpr std::size_t kControlBytes = 2 * CMSG_SPACE(sizeof(int));

  [[nodiscard]] std::span<const std::byte> received(std::size_t message) const;
  void take(std::size_t message);

  std::size_t buffer_bytes_;
  LazyMemory buffers_;
  unsigned packets_ = kBatch;  // that the next call asks for at most
  bool drained_ = true;
  std::uint64_t merged_ = 0;
  std::array<iovec, kBatch> vectors_{};
  std::array<sockaddr_in, kBatch> sources_{};
  alignas(cmsghdr) std::array<std::array<std::byte, kControlBytes>, kBatch> controls_{};
  std::array<mmsghdr, kBatch> messages_{};
  std::vector<Incoming> incoming_;
};

class SendBatch {
 public:
  SendBatch();

  /// Points messages at `datagrams`, of which there are at most kBatch, and returns them: one a
  /// datagram, or with `segment` one a run of those that may leave as one packet. A message has as
  /// many parts (msg_iovlen) as datagrams. The bytes are not copied.
  [[nodiscard]] std::span<mmsghdr> prepare(std::span<const Outgoing> datagrams, bool segment);

 private:
  std::array<iovec, kBatch> vectors_{};
  std::array<sockaddr_in, kBatch> destinations_{};
  alignas(cmsghdr)
      std::array<std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))>, kBatch> controls_{};
  std::array<mmsghdr, kBatch> messages_{};
};

}  // namespace natagg::worker
