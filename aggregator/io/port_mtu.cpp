// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/port_mtu.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_devargs.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "aggregator/io/eal.hpp"
#include "proto/net/virtual_device.hpp"

namespace natagg::aggregator::io {
namespace {

using namespace net;

/// DPDK does not know the MTU of a kernel interface that a driver is bound to.
std::optional<std::uint32_t> kernel_mtu(unsigned index) {
  ifreq request{};
  if (index == 0 || if_indextoname(index, request.ifr_name) == nullptr) return std::nullopt;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::nullopt;
  const int result = ioctl(socket, SIOCGIFMTU, &request);
  close(socket);
  if (result != 0) return std::nullopt;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

bool is_virtual(const rte_eth_dev_info& info) {
  return std::string_view{rte_bus_name(rte_dev_bus(info.device))} == "vdev";
}

void check_frame_room(const rte_eth_dev_info& info, const std::string& name, std::uint32_t mtu,
                      std::uint32_t kernel_mtu) {
  // The kernel lets no XDP program into an interface whose own MTU is larger than a page allows.
  if (info.driver_name == std::string_view{"net_af_xdp"} &&
      std::max(mtu, kernel_mtu) > kXdpMaxMtu) {
    throw std::runtime_error(fmt::format(
        "{}: MTU {} is more than the {} that net_af_xdp carries; lower the interface's (ip link "
        "set) and the option mtu, or use net_af_packet",
        name, std::max(mtu, kernel_mtu), kXdpMaxMtu));
  }
  if (info.driver_name == std::string_view{"net_tap"}) {
    constexpr std::uint32_t kAround = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN;
    const std::uint32_t most = info.max_rx_pktlen - kAround;
    if (mtu > most) {
      throw std::runtime_error(
          fmt::format("{}: MTU {} is more than the {} of DPDK's net_tap; use net_af_packet on an "
                      "interface of the kernel",
                      name, mtu, most));
    }
  }
  if (info.driver_name != std::string_view{"net_af_packet"}) return;
  const rte_devargs* arguments = rte_dev_devargs(info.device);
  const std::uint32_t size = af_packet_frame_size(arguments != nullptr ? arguments->args : "");
  const std::uint32_t most = af_packet_max_mtu(size);
  if (mtu > most) {
    throw std::runtime_error(fmt::format(
        "{}: MTU {} does not fit frames of framesz={} bytes, which carry {}; for MTU 9000 add "
        "framesz=9216,blocksz=36864,framecnt=1024 to the --vdev argument",
        name, mtu, size, most));
  }
}

}  // namespace

MtuPlan plan_mtu(std::uint16_t port, const rte_eth_dev_info& info, const std::string& name,
                 std::uint32_t wanted) {
  std::uint16_t dpdk_mtu = 0;
  if (const int error = rte_eth_dev_get_mtu(port, &dpdk_mtu); error != 0) {
    throw std::runtime_error(describe_failure("rte_eth_dev_get_mtu", name, error));
  }
  const std::optional<std::uint32_t> kernel = kernel_mtu(info.if_index);
  // Before configuration a device has no MTU yet.
  const std::uint32_t has = kernel.value_or(dpdk_mtu != 0 ? dpdk_mtu : RTE_ETHER_MTU);
  MtuPlan plan{.mtu = wanted != 0 ? wanted : has, .configured = 0, .set = false};
  if (is_shared_memory(info.driver_name)) {
    if (wanted == 0) plan.mtu = kSharedMemoryMtu;
    return plan;
  }
  check_frame_room(info, name, plan.mtu, kernel.value_or(0));
  if (kernel) {
    plan.set = plan.mtu > *kernel;
    return plan;
  }
  if (is_virtual(info)) {
    plan.set = plan.mtu != has;
    return plan;
  }
  if (plan.mtu < info.min_mtu || plan.mtu > info.max_mtu) {
    throw std::runtime_error(fmt::format("{}: mtu {} is outside the device's {} to {}", name,
                                         plan.mtu, info.min_mtu, info.max_mtu));
  }
  plan.configured = plan.mtu;
  return plan;
}

std::uint32_t apply_mtu(std::uint16_t port, const rte_eth_dev_info& info, const std::string& name,
                        const MtuPlan& plan) {
  if (!plan.set) return plan.mtu;
  const int error = rte_eth_dev_set_mtu(port, static_cast<std::uint16_t>(plan.mtu));
  if (error == 0) return plan.mtu;
  char interface[IF_NAMESIZE] = "";
  if (info.if_index != 0 && if_indextoname(info.if_index, interface) != nullptr) {
    throw std::runtime_error(
        fmt::format("{}: set the MTU of the interface first: ip link set {} mtu {}",
                    describe_failure("rte_eth_dev_set_mtu", name, error), interface, plan.mtu));
  }
  // Drivers such as net_pcap have no MTU and pass frames of any length.
  spdlog::warn("port {}: the driver knows no MTU; {} is taken on trust", name, plan.mtu);
  return plan.mtu;
}

}  // namespace natagg::aggregator::io
