// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The transport over a device of DPDK's: makes and reads frames, finds and answers neighbours, and
// tells switches what groups it listens to. It looks at the device while work is under way,
// sleeping ever longer between two looks when nothing comes: the cores belong to whoever computes
// the gradients.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "worker_lib/transport/ethdev.hpp"
#include "worker_lib/transport/ethdev_port.hpp"
#include "worker_lib/transport/frame.hpp"
#include "worker_lib/transport/neighbours.hpp"
#include "worker_lib/transport/socket.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

class EthdevTransport final : public Transport {
 public:
  /// EAL runs. Throws Error.
  explicit EthdevTransport(const EthdevConfig& config);
  ~EthdevTransport() override;

  [[nodiscard]] const EthdevPort& port() const { return port_; }
  [[nodiscard]] const proto::Endpoint& local() const { return self_.endpoint; }

  bool join(const proto::Endpoint& group) override;
  void send(std::span<const Outgoing> datagrams) override;
  [[nodiscard]] std::span<const Incoming> receive() override;
  void wait(Time nanoseconds) override;
  void wake() override;
  [[nodiscard]] TransportStats stats() const override;

 private:
  static constexpr std::size_t kBurst = 32;  // frames a call of the device
  static constexpr std::size_t kBatch = 64;

  void meet_neighbours();
  void ask_for_neighbours(Time now);
  [[nodiscard]] bool add(const Outgoing& datagram);
  template <typename Write>
  void send_control(std::size_t length, Write&& write);
  void report_memberships(Time now);
  void flush(Time patience_ends);
  void take_burst();
  [[nodiscard]] bool keeps(const rte_mbuf& frame, Time now);
  [[nodiscard]] bool sleep(Time nanoseconds);

  EthdevPort port_;
  Station self_;
  bool multicast_;
  Neighbours neighbours_;
  FileDescriptor wake_;

  std::array<rte_mbuf*, kBurst> outgoing_{};
  std::size_t outgoing_count_ = 0;

  std::array<rte_mbuf*, kBurst> taken_{};  // from the device and not looked at: [next, end)
  std::size_t taken_next_ = 0;
  std::size_t taken_end_ = 0;
  std::array<rte_mbuf*, kBatch> held_{};  // that incoming_ points into
  std::array<Incoming, kBatch> incoming_{};
  std::size_t incoming_count_ = 0;

  Time pause_;  // the next sleep
  Time next_report_ = kNever;
  std::uint64_t send_failures_ = 0;
};

}  // namespace natagg::worker
