// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Group membership (IGMPv2, RFC 2236) where no kernel speaks for the worker: switches that snoop it
// deliver a group to those alone who say that they listen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/net/headers.hpp"
#include "worker_lib/transport/station.hpp"

namespace natagg::worker {

/// Behind an IPv4 header, which here has the option that makes routers look (RFC 2113).
inline constexpr std::size_t kRouterAlert = 4;
inline constexpr std::size_t kReportFrame =
    sizeof(net::EthernetHeader) + sizeof(net::Ipv4Header) + kRouterAlert + sizeof(net::IgmpPacket);

/// Writes kReportFrame bytes: this station listens to `group`.
void write_membership_report(std::span<std::byte> out, const Station& self, std::uint32_t group);

/// Whether the frame asks who listens, to any group or to one.
[[nodiscard]] bool is_membership_query(std::span<const std::byte> frame);

}  // namespace natagg::worker
