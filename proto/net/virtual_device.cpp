// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/net/virtual_device.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "proto/net/headers.hpp"

namespace natagg::net {

using namespace std::string_view_literals;

bool leaves_checksums_partial(std::string_view driver) {
  constexpr std::array kDrivers{"net_af_packet"sv, "net_af_xdp"sv, "net_tap"sv,
                                "net_virtio_user"sv};
  return std::find(kDrivers.begin(), kDrivers.end(), driver) != kDrivers.end();
}

bool is_shared_memory(std::string_view driver) {
  return driver == "net_memif";
}

bool keeps_buffers(std::string_view driver) {
  return driver == "net_af_xdp";
}

bool spreads_over_all_queues(std::string_view driver) {
  return driver == "net_af_packet" || driver == "net_af_xdp";
}

std::optional<std::uint32_t> device_argument(std::string_view arguments, std::string_view key) {
  while (!arguments.empty()) {
    const std::string_view argument = arguments.substr(0, arguments.find(','));
    arguments.remove_prefix(std::min(argument.size() + 1, arguments.size()));
    if (argument.substr(0, argument.find('=')) != key) continue;
    const std::string_view text = argument.substr(std::min(key.size() + 1, argument.size()));
    std::uint32_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{}) return value;
  }
  return std::nullopt;
}

std::uint32_t af_packet_frame_size(std::string_view arguments) {
  return device_argument(arguments, "framesz").value_or(2048);
}

std::uint32_t af_packet_frames(std::string_view arguments) {
  return device_argument(arguments, "framecnt").value_or(512);
}

std::uint32_t af_packet_max_mtu(std::uint32_t frame_size) {
  // Of a ring's frame, the kernel uses TPACKET2_HDRLEN (52) and room for a hardware address (16),
  // aligned to 16, for itself, less the Ethernet header that it puts at the end of them.
  constexpr std::uint32_t kBeforeNetworkHeader = 80;
  return frame_size < kBeforeNetworkHeader + sizeof(net::VlanTag)
             ? 0
             : frame_size - kBeforeNetworkHeader - static_cast<std::uint32_t>(sizeof(net::VlanTag));
}

}  // namespace natagg::net
