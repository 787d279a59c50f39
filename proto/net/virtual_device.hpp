// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What has to be known of DPDK's virtual devices because their drivers cannot be asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace natagg::net {

/// Their frames come from this machine's kernel, which leaves UDP checksums to a device that is
/// not there.
[[nodiscard]] bool leaves_checksums_partial(std::string_view driver);

/// Frames are copied between the device's ring, which is another process's memory too, and buffers
/// that are given back at once: it holds none, needs no checksums, and leads to one peer.
[[nodiscard]] bool is_shared_memory(std::string_view driver);

/// The kernel, or the user by queue options, spreads frames over all of the device's queues, so
/// each must be polled.
[[nodiscard]] bool spreads_over_all_queues(std::string_view driver);

/// What its rings hold when it is closed is not given back to the pool.
[[nodiscard]] bool keeps_buffers(std::string_view driver);

/// Of a page, which is the most that net_af_xdp's buffers have with all that is around them.
inline constexpr std::uint32_t kXdpPage = 4096;

/// That the kernel leaves free before a frame in such a buffer.
inline constexpr std::uint32_t kXdpHeadroom = 256;

/// What then is left, in our buffers.
inline constexpr std::uint32_t kXdpMaxMtu = 3360;

/// "2048" of key "framesz" in "iface=veth0,framesz=2048".
[[nodiscard]] std::optional<std::uint32_t> device_argument(std::string_view arguments,
                                                           std::string_view key);

/// net_af_packet's frame size option, from its arguments.
[[nodiscard]] std::uint32_t af_packet_frame_size(std::string_view arguments);

/// Frames that each of its rings holds.
[[nodiscard]] std::uint32_t af_packet_frames(std::string_view arguments);

/// The largest MTU that net_af_packet's rings hold with frames of `frame_size` bytes: the kernel
/// cuts what is longer.
[[nodiscard]] std::uint32_t af_packet_max_mtu(std::uint32_t frame_size);

}  // namespace natagg::net
