// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One lcore's way to one port.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "aggregator/io/handoff.hpp"
#include "aggregator/io/host.hpp"
#include "aggregator/io/port.hpp"

namespace natagg::aggregator::io {

struct PortAccess {
  const Port* port = nullptr;
  Host self;                           // who the daemon is there
  std::optional<std::uint16_t> queue;  // nothing: `outbox` is another lcore's
  std::shared_ptr<MbufRing> outbox;    // with a queue: what others send through it; may be null
};

}  // namespace natagg::aggregator::io
