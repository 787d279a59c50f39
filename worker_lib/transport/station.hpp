// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Who a worker is on a link where no kernel speaks for it.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/endpoint.hpp"
#include "proto/net/headers.hpp"

namespace natagg::worker {

struct Station {
  net::MacAddress mac;
  proto::Endpoint endpoint;
  std::vector<proto::Endpoint> groups = {};  // multicast, that it listens to
};

/// A station that no other worker of the aggregator is, as long as `identity` is random: with a MAC
/// address and a port made of it, and with `address` or else a link-local one made of it too.
[[nodiscard]] Station make_station(std::uint32_t address, std::uint64_t identity);

}  // namespace natagg::worker
