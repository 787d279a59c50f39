// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The default transport: unprivileged UDP sockets. One socket on a free port for all shards of all
// aggregators, and one for each multicast group.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/endpoint.hpp"
#include "worker_lib/transport/address.hpp"
#include "worker_lib/transport/batch.hpp"
#include "worker_lib/transport/socket.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

struct UdpConfig {
  std::vector<proto::Endpoint> aggregators;
  Local local;
  bool multicast = true;  // false: join() declines
  bool gso = true;        // segmentation offload (GSO) and its counterpart (GRO), if the kernel can
};

class UdpTransport final : public Transport {
 public:
  /// Opens and binds the socket. Throws Error.
  explicit UdpTransport(const UdpConfig& config);

  /// Bytes of IPv4 packets that leave towards every aggregator without fragmentation.
  [[nodiscard]] std::size_t mtu() const { return mtu_; }

  /// Where datagrams to the first aggregator come from.
  [[nodiscard]] proto::Endpoint local() const;

  /// Datagrams that may leave in one packet do so.
  [[nodiscard]] bool segments() const { return segments_; }

  /// Asks for receive buffers of `bytes`, send buffers alike, for this and later sockets, and
  /// returns what the kernel granted, as getsockopt(SO_RCVBUF) counts. Throws Error.
  std::size_t reserve_buffers(std::size_t bytes);

  bool join(const proto::Endpoint& group) override;
  void send(std::span<const Outgoing> datagrams) override;
  [[nodiscard]] std::span<const Incoming> receive() override;
  void wait(Time nanoseconds) override;
  void wake() override;
  [[nodiscard]] TransportStats stats() const override;

 private:
  [[nodiscard]] int unicast() const { return sockets_.front().get(); }
  bool join_on_interfaces(int socket, const proto::Endpoint& group) const;
  void add_socket(FileDescriptor socket);
  void send_batch(std::span<const Outgoing> datagrams);
  std::size_t send_some(std::span<mmsghdr> messages);
  void count_segmented(std::span<const mmsghdr> messages);
  bool wait_writable();

  bool multicast_;
  bool gso_;
  bool segments_ = false;
  std::size_t mtu_ = SIZE_MAX;
  std::uint32_t source_ = 0;     // address towards the first aggregator
  std::vector<int> interfaces_;  // that lead to aggregators, each once
  int buffer_request_ = 0;
  FileDescriptor wake_;
  std::vector<FileDescriptor> sockets_;  // the unicast socket, then the groups'
  std::vector<pollfd> polled_;           // wake_, then sockets_
  std::size_t next_socket_ = 0;          // that receive() reads
  ReceiveBatch receive_batch_;
  SendBatch send_batch_;
  std::uint64_t send_failures_ = 0;
  int last_send_error_ = 0;
  std::uint64_t segmented_ = 0;
  int segmentation_error_ = 0;
};

}  // namespace natagg::worker
