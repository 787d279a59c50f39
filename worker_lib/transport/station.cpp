// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/station.hpp"

namespace natagg::worker {

Station make_station(std::uint32_t address, std::uint64_t identity) {
  const auto bits = [&](unsigned from, unsigned range) {
    return static_cast<std::uint32_t>((identity >> from) % range);
  };
  // RFC 3927 keeps the first and last 256 of the link-local addresses.
  constexpr std::uint32_t kLinkLocal = 169U << 24 | 254U << 16 | 1U << 8;
  constexpr std::uint16_t kFirstFreePort = 49152;
  Station station;
  station.mac.bytes[0] = 0x02;  // administered locally
  for (unsigned i = 1; i < 6; ++i) {
    station.mac.bytes[i] = static_cast<std::uint8_t>(identity >> (8 * i));
  }
  station.endpoint = {.address = address != 0 ? address : kLinkLocal + bits(8, 254U << 8),
                      .port = static_cast<std::uint16_t>(kFirstFreePort + bits(40, 1U << 14))};
  return station;
}

}  // namespace natagg::worker
