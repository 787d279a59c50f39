// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Datagrams through memory that a worker shares with an aggregator of its host (memif): no kernel
// network, no copy on the way in, one on the way out, and no system call while there is work.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "worker_lib/transport/frame.hpp"
#include "worker_lib/transport/memif_link.hpp"
#include "worker_lib/transport/neighbours.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

struct MemifConfig {
  memif::Address address;
  std::vector<proto::Endpoint> aggregators;
  std::uint32_t local = 0;     // IPv4 address of this end; 0: a link-local one from `identity`
  std::uint64_t identity = 0;  // random
};

/// "memif:PATH[,id=N]" without "memif:". Throws Error (NATAGG_INVALID_ARGUMENT).
[[nodiscard]] memif::Address parse_memif(std::string_view text);

class MemifTransport final : public Transport {
 public:
  /// The server may come later. Throws Error.
  explicit MemifTransport(const MemifConfig& config);

  /// Bytes of IPv4 packets that fit the link's frames.
  static constexpr std::size_t kMtu = memif::kMaxFrame - sizeof(net::EthernetHeader);
  /// Packets under way that surely find room: DPDK may use two descriptors for a frame.
  static constexpr std::size_t kInFlight = (std::size_t{1} << memif::Link::kLog2Frames) / 2;
  static constexpr std::size_t kReceiveBytes = memif::kMaxFrame << memif::Link::kLog2Frames;

  [[nodiscard]] const proto::Endpoint& local() const { return self_.endpoint; }

  bool join(const proto::Endpoint&) override { return false; }  // one peer needs no group
  void send(std::span<const Outgoing> datagrams) override;
  [[nodiscard]] std::span<const Incoming> receive() override;
  void wait(Time nanoseconds) override;
  void wake() override;
  [[nodiscard]] TransportStats stats() const override;

 private:
  void look_after_link();
  void ask_for_neighbours(memif::Memory& memory);
  [[nodiscard]] bool send_one(memif::Memory& memory, const Outgoing& datagram, Time patience_ends);
  [[nodiscard]] std::optional<std::span<const std::byte>> next_frame(memif::Memory& memory,
                                                                     std::size_t scratch);
  void sleep(Time nanoseconds);

  static constexpr std::size_t kBatch = 64;

  Station self_;
  Neighbours neighbours_;
  memif::Link link_;
  std::uint32_t connections_seen_ = 0;
  FileDescriptor wake_;
  std::array<Incoming, kBatch> incoming_{};
  std::vector<std::array<std::byte, memif::kMaxFrame>> scratch_;  // of frames in several pieces
  Time idle_cap_;                                                 // of the next sleep
  std::uint64_t send_failures_ = 0;
};

}  // namespace natagg::worker
