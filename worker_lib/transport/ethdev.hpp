// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Datagrams over a network device that DPDK drives, in a library that was built with DPDK. The
// device is this worker's alone, and its IPv4 address there is not the kernel's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/endpoint.hpp"

namespace natagg::worker {

struct Carrier;

struct EthdevConfig {
  std::string device = {};  // as for --vdev or -a: "net_af_packet0,iface=eth1", "0000:81:00.0"
  std::string eal_arguments = {};  // for a process in which DPDK does not run yet
  std::vector<proto::Endpoint> aggregators = {};
  std::uint32_t local = 0;  // IPv4 address of this end; 0: a link-local one from `identity`
  bool multicast = true;
  std::uint64_t identity = 0;  // random
};

/// Throws Error that names the call, the device and a remedy; in a library without DPDK, always.
[[nodiscard]] Carrier make_ethdev(const EthdevConfig& config);

}  // namespace natagg::worker
