// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// In place of the other sources of the transport, where DPDK is left out of the library.
#include "worker_lib/error.hpp"
#include "worker_lib/transport/carrier.hpp"
#include "worker_lib/transport/ethdev.hpp"

namespace natagg::worker {

Carrier make_ethdev(const EthdevConfig& config) {
  throw Error(NATAGG_INVALID_ARGUMENT, "transport: \"ethdev:" + config.device +
                                           "\" needs a library that was built with DPDK, by "
                                           "meson's option ethdev_worker");
}

}  // namespace natagg::worker
