// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A shard's configuration, from the daemon's options.
#pragma once

#include <cstdint>

#include "aggregator/core/shard.hpp"
#include "aggregator/options.hpp"

namespace natagg::aggregator {

/// For shard `index` of `shards` behind a device of `mtu` bytes. `first_epoch` is random, so that
/// packets of an earlier run of the daemon are not taken for this one's. Throws
/// std::invalid_argument when the options do not suit the device or this CPU.
[[nodiscard]] ShardConfig shard_config(const Options& options, std::uint16_t index,
                                       std::uint16_t shards, std::uint32_t mtu,
                                       std::uint32_t first_epoch);

}  // namespace natagg::aggregator
