// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// From the options of the C interface to the configuration of a worker's parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "natagg/natagg.h"
#include "worker_lib/core/stream.hpp"
#include "worker_lib/transport/ethdev.hpp"
#include "worker_lib/transport/memif.hpp"
#include "worker_lib/transport/udp.hpp"

namespace natagg::worker {

struct WorkerConfig {
  StreamConfig stream;  // without instance, entropy, mtu, in_flight and connect_deadline
  UdpConfig udp;
  std::optional<MemifConfig> memif;    // in place of udp; without identity
  std::optional<EthdevConfig> ethdev;  // the same
  Time connect_timeout = 0;
  Time operation_timeout = 0;
  Time busy_poll = 0;
  std::uint16_t io_threads = 1;          // at most; a pool of fewer shards has a lane for each
  std::size_t receive_buffer_bytes = 0;  // 0: enough for the window
  double transmit_loss = 0;
  double receive_loss = 0;
  std::uint64_t loss_seed = 0;
  std::string record;  // file for all packets; empty: none
};

/// The defaults, as natagg_options_init() documents them.
[[nodiscard]] natagg_options default_options();

/// Checks every option. Throws Error (NATAGG_INVALID_ARGUMENT) that begins with the option's name.
[[nodiscard]] WorkerConfig make_config(const natagg_options& options);

}  // namespace natagg::worker
