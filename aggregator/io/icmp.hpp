// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// ICMP echo (RFC 792), so that "does the aggregator answer ping" means what people expect.
#pragma once

#include <cstddef>
#include <span>

#include "aggregator/io/host.hpp"
#include "aggregator/io/io_counters.hpp"

namespace natagg::aggregator::io {

/// kRxEcho for an echo request, else the reason to drop. `message` is IPv4's whole payload.
[[nodiscard]] IoCounter check_echo(std::span<const std::byte> message);

/// Turns the frame of a request into the reply, in place; `network` is the IPv4 header's offset.
/// Returns the reply's length, which leaves out the request's padding.
std::size_t answer_echo(std::span<std::byte> frame, std::size_t network, const Host& self);

}  // namespace natagg::aggregator::io
