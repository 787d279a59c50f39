// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The MTU: what the device has, what is wanted, and whether the two agree.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>
#include <string>

namespace natagg::aggregator::io {

/// What a packet of the most values needs.
inline constexpr std::uint32_t kSharedMemoryMtu = 9000;

struct MtuPlan {
  std::uint32_t mtu = 0;
  std::uint32_t configured = 0;  // for rte_eth_conf; 0: the driver's default
  bool set = false;              // the device has another and must be told
};

/// `wanted` 0 means the device's own, or the longest frames of all where it is memory that knows no
/// MTU. Throws std::runtime_error with a remedy when the device
/// cannot carry it.
[[nodiscard]] MtuPlan plan_mtu(std::uint16_t port, const rte_eth_dev_info& info,
                               const std::string& name, std::uint32_t wanted);

/// Between configuration and start. Returns the MTU in effect.
std::uint32_t apply_mtu(std::uint16_t port, const rte_eth_dev_info& info, const std::string& name,
                        const MtuPlan& plan);

}  // namespace natagg::aggregator::io
