// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Asks the device to give each shard's UDP port its own queue.
#pragma once

#include <cstdint>
#include <string>

namespace natagg::aggregator::io {

/// Frames for UDP port first_port + i go to queue i modulo `queues`. Where the device does not do
/// that, warns: frames are then handed over in software.
void steer_ports(std::uint16_t port, const std::string& name, std::uint16_t first_port,
                 std::uint16_t shards, std::uint16_t queues);

}  // namespace natagg::aggregator::io
