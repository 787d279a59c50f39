// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Lets DPDK's capture tools (dpdk-dumpcap, dpdk-pdump) attach to the running daemon, the way to
// record where the kernel does not see the packets. Costs nothing until they do.
#pragma once

namespace natagg::aggregator::io {

class Capture {
 public:
  /// After EAL. Where that keeps its memory to itself (--no-huge, --in-memory), no tool can attach.
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  bool offered_ = false;
};

}  // namespace natagg::aggregator::io
