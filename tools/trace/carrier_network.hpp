// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A transport of the worker library, which is one endpoint for all ranks: a device that DPDK
// drives, or memory shared with the aggregator.
#pragma once

#include <vector>

#include "tools/trace/rank_network.hpp"
#include "worker_lib/transport/carrier.hpp"

namespace natagg::tools {

class CarrierNetwork final : public RankNetwork {
 public:
  explicit CarrierNetwork(worker::Carrier carrier);

  [[nodiscard]] std::size_t open(const proto::Endpoint& to) override;
  /// The datagram leaves with the next ones, at the next receive() at the latest. Throws TraceError
  /// where it is longer than the transport carries.
  void send(std::size_t way, std::span<const std::byte> datagram) override;
  void receive(std::int64_t nanoseconds, const OnDatagram& on_datagram) override;
  void close() override;

 private:
  struct Waiting {
    proto::Endpoint to;
    std::vector<std::byte> datagram;
  };

  void flush();

  static constexpr std::size_t kBatch = 32;

  worker::Carrier carrier_;
  std::vector<proto::Endpoint> ways_;
  std::vector<Waiting> waiting_;  // the first waiting_count_; their memory is used again
  std::size_t waiting_count_ = 0;
  std::vector<worker::Outgoing> outgoing_;
};

}  // namespace natagg::tools
