// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Addresses as users write them, and what this host's routing says about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/endpoint.hpp"

namespace natagg::worker {

/// "address[:port][,address[:port]...]" in numeric IPv4; the port defaults to kDefaultPort.
/// Throws Error (NATAGG_INVALID_ARGUMENT) that quotes the part that is wrong.
[[nodiscard]] std::vector<proto::Endpoint> parse_aggregators(std::string_view text);

/// Where to send from: an address, an interface, or neither when routing decides.
struct Local {
  std::uint32_t address = 0;
  std::string interface;
};

/// A numeric IPv4 address or else the name of an interface; "" for neither.
[[nodiscard]] Local parse_local(std::string_view text);

/// How packets to a destination leave this host.
struct Route {
  int interface_index = 0;
  std::size_t mtu = 0;       // bytes, of the interface and the route
  std::uint32_t source = 0;  // address from which they are sent
};

/// Asks the kernel, sending nothing. Throws Error (NATAGG_SYSTEM_ERROR) when there is no route.
[[nodiscard]] Route find_route(const proto::Endpoint& destination, const Local& local);

/// Applies `local` to an IPv4 UDP socket and gives it a free port. Throws Error.
void bind_local(int socket, const Local& local);

}  // namespace natagg::worker
