// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Commands for dpdk-telemetry.py: /natagg/stats and /natagg/config.
#pragma once

#include "aggregator/io/datapath.hpp"
#include "aggregator/options.hpp"

namespace natagg::aggregator::io {

/// While it exists, the commands answer from what it was given.
class Telemetry {
 public:
  Telemetry(const Datapath& datapath, const Options& options);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;
};

}  // namespace natagg::aggregator::io
