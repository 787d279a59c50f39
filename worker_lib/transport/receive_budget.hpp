// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// How many packets a socket's receive buffer holds, so that a worker never has more under way than
// its own kernel can keep while it is descheduled.
#pragma once

#include <algorithm>
#include <cstddef>

namespace natagg::worker {

/// Receive buffer memory that the kernel charges for one UDP datagram of `datagram` bytes. Linux
/// charges a packet's `truesize`: its data area, rounded up to a power of two or to a page by
/// allocator and driver (headers and 320 bytes of skb_shared_info stand in it too), and 256 bytes
/// of struct sk_buff. That is 2,304 for a full packet at MTU 1500 and 16,640 at MTU 9000; twice
/// the datagram with its overhead is above both.
[[nodiscard]] constexpr std::size_t packet_charge(std::size_t datagram) {
  constexpr std::size_t overhead = 512;
  return std::max<std::size_t>(2304, 2 * (datagram + overhead));
}

/// Datagrams of `datagram` bytes that surely fit a buffer of which getsockopt(SO_RCVBUF) says
/// `granted`, at least 1. That number is the limit on charges (and twice what setsockopt asked
/// for). A quarter is left out, because the kernel gives memory back only when a reader has
/// drained the queue or a quarter of the buffer (udp_rmem_release).
[[nodiscard]] constexpr std::size_t packets_that_fit(std::size_t granted, std::size_t datagram) {
  return std::max<std::size_t>(1, granted / 4 * 3 / packet_charge(datagram));
}

/// What to ask setsockopt(SO_RCVBUF) for, so that `packets` such datagrams fit.
[[nodiscard]] constexpr std::size_t buffer_for(std::size_t packets, std::size_t datagram) {
  return (packets * packet_charge(datagram) + 2) / 3 * 4 / 2 + 1;
}

}  // namespace natagg::worker
