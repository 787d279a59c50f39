// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The daemon's IPv4 address is not the kernel's, so it answers for it: ARP (RFC 826).
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "aggregator/io/host.hpp"
#include "aggregator/io/io_counters.hpp"

namespace natagg::aggregator::io {

/// kRxArp for a request for self's address, kAddressConflicts for a packet in which another host
/// claims it, else the reason to drop. `packet` starts behind the Ethernet header and tag.
[[nodiscard]] IoCounter check_arp(std::span<const std::byte> packet, const Host& self);

/// Turns the frame of a request into the reply, in place; `network` is the ARP packet's offset.
/// Returns the reply's length, which leaves out the request's padding.
std::size_t answer_arp(std::span<std::byte> frame, std::size_t network, const Host& self);

inline constexpr std::size_t kArpFrameBytes = sizeof(EthernetHeader) + sizeof(ArpPacket);

/// The untagged broadcast that tells switches and neighbours where self is (RFC 5227,
/// announcement).
[[nodiscard]] std::array<std::byte, kArpFrameBytes> arp_announcement(const Host& self);

}  // namespace natagg::aggregator::io
