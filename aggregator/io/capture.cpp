// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/capture.hpp"

#include <rte_eal.h>
#include <rte_pdump.h>
#include <spdlog/spdlog.h>

#include "aggregator/io/eal.hpp"

namespace natagg::aggregator::io {

Capture::Capture() {
  if (rte_eal_has_hugepages() == 0) return;
  offered_ = rte_pdump_init() == 0;
  if (!offered_)
    spdlog::info("no capture by dpdk-dumpcap: {}", describe_failure("rte_pdump_init", "EAL"));
}

Capture::~Capture() {
  if (offered_) rte_pdump_uninit();
}

}  // namespace natagg::aggregator::io
