// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a captured frame holds: the UDP datagram in it, whatever the link and its tags. Reads
// nothing that it has not checked to have been captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "proto/endpoint.hpp"

namespace natagg::tools {

enum class Link : std::uint8_t { kEthernet, kRawIpv4, kCooked, kCooked2 };

struct CapturedDatagram {
  proto::Endpoint from;
  proto::Endpoint to;
  std::span<const std::byte> payload;  // as far as it was captured
  std::size_t length = 0;              // of the payload on the wire
  bool fragment = false;               // `payload` is a part of the datagram's
};

/// The UDP datagram over IPv4 in a frame of which `captured` is the beginning; nothing where it
/// holds something else, or the part of a fragment that has no UDP header.
[[nodiscard]] std::optional<CapturedDatagram> find_datagram(Link link,
                                                            std::span<const std::byte> captured);

}  // namespace natagg::tools
