// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A library that was built without DPDK, of which it has the one source that takes its place.
#include <gtest/gtest.h>

#include <string>

#include "worker_lib/error.hpp"
#include "worker_lib/transport/carrier.hpp"
#include "worker_lib/transport/ethdev.hpp"

namespace natagg::testing {
namespace {

TEST(EthdevAbsent, SaysWhatIsMissing) {
  try {
    static_cast<void>(worker::make_ethdev({.device = "net_ring0"}));
    FAIL() << "accepted";
  } catch (const worker::Error& error) {
    EXPECT_EQ(error.status(), NATAGG_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(error.what()),
              "transport: \"ethdev:net_ring0\" needs a library that was built with DPDK, by "
              "meson's option ethdev_worker");
  }
}

}  // namespace
}  // namespace natagg::testing
