// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// UDP sockets, one for each rank and session, as the workers had.
#pragma once

#include <vector>

#include "tools/trace/rank_network.hpp"
#include "worker_lib/transport/address.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::tools {

class SocketNetwork final : public RankNetwork {
 public:
  explicit SocketNetwork(worker::Local local);

  [[nodiscard]] std::size_t open(const proto::Endpoint& to) override;
  void send(std::size_t way, std::span<const std::byte> datagram) override;
  void receive(std::int64_t nanoseconds, const OnDatagram& on_datagram) override;
  void close() override { sockets_.clear(); }

 private:
  worker::Local local_;
  worker::FileDescriptor poll_;
  std::vector<worker::FileDescriptor> sockets_;
  std::vector<std::byte> buffer_;
};

}  // namespace natagg::tools
