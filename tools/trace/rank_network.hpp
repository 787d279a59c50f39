// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How the datagrams of a replay's ranks travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "proto/endpoint.hpp"

namespace natagg::tools {

/// As the worker's options of these names say.
struct NetworkOptions {
  std::string transport;  // "" or "udp": sockets
  std::string local;
  std::string eal;
};

class RankNetwork {
 public:
  using OnDatagram = std::function<void(std::span<const std::byte>)>;

  RankNetwork() = default;
  RankNetwork(const RankNetwork&) = delete;
  RankNetwork& operator=(const RankNetwork&) = delete;
  virtual ~RankNetwork() = default;

  /// A way to `to`, for one rank; its number counts up from 0 since close().
  [[nodiscard]] virtual std::size_t open(const proto::Endpoint& to) = 0;

  /// What cannot be sent is lost, as on the way.
  virtual void send(std::size_t way, std::span<const std::byte> datagram) = 0;

  /// Hands over what has arrived on any way; waits for it up to so long, in whole milliseconds.
  /// `on_datagram` may send.
  virtual void receive(std::int64_t nanoseconds, const OnDatagram& on_datagram) = 0;

  /// All ways.
  virtual void close() = 0;
};

/// To `aggregator`. Throws std::system_error, or worker::Error where an option is wrong or a
/// device cannot be had.
[[nodiscard]] std::unique_ptr<RankNetwork> make_network(const NetworkOptions& options,
                                                        const proto::Endpoint& aggregator);

}  // namespace natagg::tools
