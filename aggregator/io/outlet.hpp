// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What one lcore sends by one port: frames are collected to a burst, which goes to the lcore's own
// queue or through the lcore that has one.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "aggregator/io/io_counters.hpp"
#include "aggregator/io/port_access.hpp"

namespace natagg::aggregator::io {

class Outlet {
 public:
  Outlet(PortAccess access, IoCounters& counters);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  [[nodiscard]] const Port& port() const { return *access_.port; }
  [[nodiscard]] const Host& self() const { return access_.self; }

  /// A whole frame; takes the mbuf.
  void put(rte_mbuf* frame) {
    pending_[count_++] = frame;
    if (count_ == kBurst) flush();
  }
  /// Takes up what other lcores want sent by this one's queue. Returns how many frames.
  unsigned relay();
  /// Gives the device, or the ring, all that is left.
  void flush();

 private:
  void flush_to_device(std::uint16_t queue);

  const PortAccess access_;
  IoCounters& counters_;
  std::array<rte_mbuf*, kBurst> pending_;
  std::uint16_t count_ = 0;
};

}  // namespace natagg::aggregator::io
