// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Sends the log of DPDK and its drivers to spdlog, with levels kept.
#pragma once

namespace natagg::aggregator::io {

void route_dpdk_log();

/// Gives DPDK its own stream back, before spdlog ends.
void restore_dpdk_log();

}  // namespace natagg::aggregator::io
