// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/ethdev_port.hpp"

#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

#include "proto/net/virtual_device.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/transport/eal.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::worker {
namespace {

using namespace std::string_view_literals;

constexpr std::uint16_t kDescriptors = 1024;  // a queue, if the device has no wish of its own
constexpr unsigned kFramesAtWork = 255;       // in neither queue
constexpr std::uint32_t kJumboMtu = 9000;     // what a packet of the most values needs
constexpr std::uint64_t kTxChecksum = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;

void require(int result, const char* function, const std::string& device,
             std::string_view remedy = "") {
  if (result != 0) {
    throw_dpdk_error(result, std::string(function) + "(" + device + ")", remedy);
  }
}

std::string_view arguments_of(std::string_view device) {
  return device.substr(std::min(device.find(',') + 1, device.size()));
}

/// DPDK does not know the MTU of a kernel interface that a driver is bound to.
std::optional<std::uint32_t> kernel_mtu(unsigned index) {
  ifreq request{};
  if (index == 0 || ::if_indextoname(index, request.ifr_name) == nullptr) return std::nullopt;
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return std::nullopt;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

/// The longest packets that the device can be made to carry. What arrives, the stream finds out.
std::uint32_t choose_mtu(const rte_eth_dev_info& info, std::string_view arguments) {
  const std::string_view driver = info.driver_name;
  std::uint32_t mtu = kernel_mtu(info.if_index).value_or(kJumboMtu);
  if (driver == "net_af_packet") {
    mtu = std::min(mtu, net::af_packet_max_mtu(net::af_packet_frame_size(arguments)));
  }
  if (driver == "net_af_xdp") mtu = std::min(mtu, net::kXdpMaxMtu);
  return std::min<std::uint32_t>({mtu, info.max_mtu, kJumboMtu});
}

/// Bytes that the driver wants a receive buffer to hold.
std::uint32_t choose_buffer(const rte_eth_dev_info& info, std::string_view arguments,
                            std::uint32_t mtu) {
  constexpr std::uint32_t kAround = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + RTE_ETHER_CRC_LEN;
  const std::string_view driver = info.driver_name;
  std::uint32_t bytes =
      std::max({mtu + kAround, info.min_rx_bufsize, std::uint32_t{RTE_MBUF_DEFAULT_DATAROOM}});
  if (driver == "net_af_packet") bytes = std::max(bytes, net::af_packet_frame_size(arguments));
  if (driver == "net_af_xdp") bytes = std::max(bytes, mtu + kAround + net::kXdpHeadroom);
  return bytes;
}

bool is_virtual(const rte_eth_dev_info& info) {
  return rte_bus_name(rte_dev_bus(info.device)) == "vdev"sv;
}

void check_queues(const rte_eth_dev_info& info, const std::string& device) {
  if (!net::spreads_over_all_queues(info.driver_name) || info.max_rx_queues == 1) return;
  throw Error(NATAGG_INVALID_ARGUMENT,
              "transport: the kernel spreads frames over the " +
                  std::to_string(info.max_rx_queues) + " queues of " + device +
                  ", and a worker reads one; leave qpairs and queue_count out");
}

std::uint16_t descriptors(std::uint16_t preferred) {
  return preferred != 0 ? preferred : kDescriptors;
}

}  // namespace

// --- The device ---

OwnedDevice::OwnedDevice(const std::string& name) {
  if (name.starts_with("net_memif")) {
    throw Error(
        NATAGG_INVALID_ARGUMENT,
        "transport: DPDK's net_memif crashes a process whose peer dies; \"memif:PATH,id=N\" "
        "shares the same memory and does not");
  }
  const auto lock = lock_devices();
  forget_dpdk_errors();
  // Of a device that DPDK has already, rte_dev_probe() says that all is well.
  probed_ = !find(name);
  if (probed_) {
    require(rte_dev_probe(name.c_str()), "rte_dev_probe", name,
            "the device is written as for DPDK's --vdev, such as net_af_packet0,iface=eth1, or for "
            "-a; `ip link` lists the kernel's interfaces, and their drivers need CAP_NET_RAW");
    if (!find(name)) {
      throw_dpdk_error(ENODEV, "rte_dev_probe(" + name + ")", "the device has no Ethernet port");
    }
  }
  try {
    own(name);
  } catch (...) {
    if (probed_) give_back();
    throw;
  }
}

bool OwnedDevice::find(const std::string& name) {
  rte_dev_iterator iterator;
  std::uint16_t port = RTE_MAX_ETHPORTS;
  RTE_ETH_FOREACH_MATCHING_DEV(port, name.c_str(), &iterator) {
    port_ = port;
    rte_eth_iterator_cleanup(&iterator);
    return true;
  }
  return false;
}

void OwnedDevice::own(const std::string& name) {
  require(rte_eth_dev_owner_new(&owner_.id), "rte_eth_dev_owner_new", name);
  "natagg worker"sv.copy(owner_.name, sizeof owner_.name - 1);
  require(rte_eth_dev_owner_set(port_, &owner_), "rte_eth_dev_owner_set", name,
          "another worker of this process has the device");
}

OwnedDevice::~OwnedDevice() {
  const auto lock = lock_devices();
  rte_eth_dev_stop(port_);
  rte_eth_dev_owner_unset(port_, owner_.id);
  if (probed_) give_back();
}

void OwnedDevice::give_back() const {
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(port_, &info) == 0) rte_dev_remove(info.device);
}

// --- The port ---

EthdevPort::EthdevPort(const std::string& device) : device_(device) {
  configure(device);
}

void EthdevPort::configure(const std::string& device) {
  const std::uint16_t port = device_.port();
  rte_eth_dev_info info{};
  require(rte_eth_dev_info_get(port, &info), "rte_eth_dev_info_get", device);
  check_queues(info, device);
  const std::string_view arguments = arguments_of(device);
  const std::uint32_t mtu = choose_mtu(info, arguments);
  mtu_ = mtu;
  buffer_bytes_ = choose_buffer(info, arguments, mtu);

  rte_eth_conf conf{};
  adds_checksums_ = (info.tx_offload_capa & kTxChecksum) != 0;
  if (adds_checksums_) conf.txmode.offloads = kTxChecksum;
  if (!is_virtual(info)) conf.rxmode.mtu = mtu;
  require(rte_eth_dev_configure(port, 1, 1, &conf), "rte_eth_dev_configure", device,
          "the application must not have started the device");

  rx_descriptors_ = descriptors(info.default_rxportconf.ring_size);
  tx_descriptors_ = descriptors(info.default_txportconf.ring_size);
  require(rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx_descriptors_, &tx_descriptors_),
          "rte_eth_dev_adjust_nb_rx_tx_desc", device);
  capacity_ = info.driver_name == "net_af_packet"sv ? net::af_packet_frames(arguments)
                                                    : std::size_t{rx_descriptors_};
  make_pool(device, rte_eth_dev_socket_id(port));
  set_up_queues(device, info);
  require(rte_eth_dev_start(port), "rte_eth_dev_start", device);
}

void EthdevPort::make_pool(const std::string& device, int socket) {
  const std::string name = "natagg-worker-" + std::to_string(device_.port());
  const unsigned frames = unsigned{rx_descriptors_} + tx_descriptors_ + kFramesAtWork;
  // One thread at a time uses it, and is none of EAL's, which have caches.
  pool_.reset(rte_pktmbuf_pool_create_by_ops(
      name.c_str(), frames, 0, 0, static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + buffer_bytes_),
      socket, "ring_sp_sc"));
  if (!pool_) {
    throw_dpdk_error(rte_errno, "rte_pktmbuf_pool_create(" + device + ")",
                     "give DPDK more memory by the option eal: --no-huge -m MB, or hugepages");
  }
}

void EthdevPort::set_up_queues(const std::string& device, const rte_eth_dev_info& info) {
  const std::uint16_t port = device_.port();
  const auto socket = static_cast<unsigned>(rte_eth_dev_socket_id(port));
  require(
      rte_eth_rx_queue_setup(port, 0, rx_descriptors_, socket, &info.default_rxconf, pool_.get()),
      "rte_eth_rx_queue_setup", device);
  rte_eth_txconf tx = info.default_txconf;
  if (adds_checksums_) tx.offloads = kTxChecksum & info.tx_queue_offload_capa;
  require(rte_eth_tx_queue_setup(port, 0, tx_descriptors_, socket, &tx), "rte_eth_tx_queue_setup",
          device);
}

net::MacAddress EthdevPort::mac() const {
  rte_ether_addr address{};
  require(rte_eth_macaddr_get(device_.port(), &address), "rte_eth_macaddr_get", "the device");
  net::MacAddress mac;
  std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), mac.bytes.begin());
  return mac;
}

void EthdevPort::mark_for_checksum(rte_mbuf& frame) {
  frame.l2_len = sizeof(net::EthernetHeader);
  frame.l3_len = sizeof(net::Ipv4Header);
  frame.ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
}

bool EthdevPort::link_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(device_.port(), &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::uint64_t EthdevPort::missed() const {
  rte_eth_stats stats{};
  return rte_eth_stats_get(device_.port(), &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
}

void EthdevPort::hear_multicast() const {
  rte_eth_allmulticast_enable(device_.port());
}

std::size_t EthdevPort::take(std::span<rte_mbuf*> frames) const {
  return rte_eth_rx_burst(device_.port(), 0, frames.data(),
                          static_cast<std::uint16_t>(frames.size()));
}

std::size_t EthdevPort::give(std::span<rte_mbuf*> frames) const {
  return rte_eth_tx_burst(device_.port(), 0, frames.data(),
                          static_cast<std::uint16_t>(frames.size()));
}

}  // namespace natagg::worker
