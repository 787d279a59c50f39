// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the kernel says about this process, its network namespace and other processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace natagg::bench {

/// CLOCK_MONOTONIC, which all processes of a machine share.
[[nodiscard]] std::uint64_t now_ns();

/// User and system time of all threads of this process.
[[nodiscard]] std::uint64_t own_cpu_ns();

/// The same of another process; throws std::system_error when there is none.
[[nodiscard]] std::uint64_t cpu_ns(pid_t pid);

/// Totals of this network namespace since it began.
struct NetworkTotals {
  std::uint64_t received_bytes = 0;  // by the interface, with Ethernet headers
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_packets = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t tcp_retransmissions = 0;  // segments
};

/// The bytes and packets are zero where there is no such interface.
[[nodiscard]] NetworkTotals network_totals(const std::string& interface);

}  // namespace natagg::bench
