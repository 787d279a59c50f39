// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/port.hpp"

#include <fmt/format.h>
#include <rte_bus.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "aggregator/io/eal.hpp"
#include "aggregator/io/port_mtu.hpp"
#include "aggregator/io/virtual_device.hpp"

namespace natagg::aggregator::io {
namespace {

constexpr std::uint16_t kDescriptors = 1024;  // a queue, if the device has no wish of its own
constexpr std::uint64_t kRxChecksums = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
constexpr std::uint64_t kTxChecksums = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
constexpr std::uint64_t kTxWanted = kTxChecksums | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
constexpr std::uint64_t kRss = RTE_ETH_RSS_NONFRAG_IPV4_UDP;

void require(int result, const char* call, const std::string& object) {
  if (result != 0) throw std::runtime_error(describe_failure(call, object, result));
}

std::uint16_t find_port() {
  // Devices that belong to another, such as those of a bond, have an owner.
  const auto next = [](unsigned port) {
    return rte_eth_find_next_owned_by(static_cast<std::uint16_t>(port), RTE_ETH_DEV_NO_OWNER);
  };
  const std::uint64_t first = next(0);
  if (first >= RTE_MAX_ETHPORTS) {
    throw std::runtime_error(
        "no network device: give EAL one with -a PCI-ADDRESS or --vdev, and see above whether its "
        "driver refused it");
  }
  if (next(static_cast<unsigned>(first) + 1) < RTE_MAX_ETHPORTS) {
    spdlog::warn("several network devices; only the first is used");
  }
  return static_cast<std::uint16_t>(first);
}

std::uint16_t choose_queues(const rte_eth_dev_info& info, unsigned lcores,
                            const std::string& name) {
  const std::uint16_t most = std::min(info.max_rx_queues, info.max_tx_queues);
  if (spreads_over_all_queues(info.driver_name)) {
    if (most > lcores) {
      throw std::runtime_error(
          fmt::format("{}: the kernel spreads frames over {} queues, but there are {} lcores to "
                      "read them; give as many queues as lcores or fewer",
                      name, most, lcores));
    }
    return most;
  }
  // One that cannot distribute would leave its other queues empty, and a peer (memif) that offers
  // fewer could not take what is sent on them.
  const bool distributes = (info.flow_type_rss_offloads & kRss) != 0;
  return distributes ? static_cast<std::uint16_t>(std::min<unsigned>(most, lcores)) : 1;
}

std::uint16_t descriptors(std::uint16_t preferred) {
  return preferred != 0 ? preferred : kDescriptors;
}

/// Bytes that the driver wants a receive buffer to hold.
std::uint32_t buffer_bytes(const rte_eth_dev_info& info, std::uint32_t mtu) {
  constexpr std::uint32_t kCrc = 4;
  const std::uint32_t frame =
      mtu + static_cast<std::uint32_t>(sizeof(EthernetHeader) + sizeof(VlanTag)) + kCrc;
  std::uint32_t bytes = std::max(frame, info.min_rx_bufsize);
  if (info.driver_name == std::string_view{"net_af_packet"}) {
    const rte_devargs* arguments = rte_dev_devargs(info.device);
    bytes = std::max(bytes, af_packet_frame_size(arguments != nullptr ? arguments->args : ""));
  }
  return bytes;
}

}  // namespace

Port::Port(std::uint32_t mtu, unsigned lcores) : device_{find_port()} {
  char name[RTE_ETH_NAME_MAX_LEN];
  require(rte_eth_dev_get_name_by_port(id(), name), "rte_eth_dev_get_name_by_port",
          fmt::format("port {}", id()));
  name_ = name;
  configure(mtu, lcores);
  require(rte_eth_dev_start(id()), "rte_eth_dev_start", name_);
  wait_for_link();
}

void Port::configure(std::uint32_t wanted_mtu, unsigned lcores) {
  rte_eth_dev_info info{};
  require(rte_eth_dev_info_get(id(), &info), "rte_eth_dev_info_get", name_);
  queues_ = choose_queues(info, lcores, name_);
  socket_ = rte_eth_dev_socket_id(id());  // SOCKET_ID_ANY (-1) for most virtual devices

  rte_eth_conf conf{};
  conf.rxmode.offloads = kRxChecksums & info.rx_offload_capa;
  conf.txmode.offloads = kTxWanted & info.tx_offload_capa;
  if (queues_ > 1 && (info.flow_type_rss_offloads & kRss) != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = kRss;
  }
  const MtuPlan plan = plan_mtu(id(), info, name_, wanted_mtu);
  conf.rxmode.mtu = plan.configured;
  require(rte_eth_dev_configure(id(), queues_, queues_, &conf), "rte_eth_dev_configure",
          fmt::format("{} ({} queues, mtu {})", name_, queues_, plan.mtu));
  mtu_ = apply_mtu(id(), info, name_, plan);

  std::uint16_t rx_descriptors = descriptors(info.default_rxportconf.ring_size);
  std::uint16_t tx_descriptors = descriptors(info.default_txportconf.ring_size);
  require(rte_eth_dev_adjust_nb_rx_tx_desc(id(), &rx_descriptors, &tx_descriptors),
          "rte_eth_dev_adjust_nb_rx_tx_desc", name_);
  pools_ = std::make_unique<Pools>(PoolNeeds{.lcores = lcores,
                                             .queues = queues_,
                                             .rx_descriptors = rx_descriptors,
                                             .tx_descriptors = tx_descriptors,
                                             .frame_bytes = buffer_bytes(info, mtu_)},
                                   socket_);

  rte_eth_rxconf rx = info.default_rxconf;
  rx.offloads = conf.rxmode.offloads & info.rx_queue_offload_capa;
  rte_eth_txconf tx = info.default_txconf;
  tx.offloads = conf.txmode.offloads & info.tx_queue_offload_capa;
  const auto socket = static_cast<unsigned>(socket_);
  for (std::uint16_t queue = 0; queue < queues_; ++queue) {
    const std::string object = fmt::format("{} queue {}", name_, queue);
    require(rte_eth_rx_queue_setup(id(), queue, rx_descriptors, socket, &rx, pools_->frames()),
            "rte_eth_rx_queue_setup", object);
    require(rte_eth_tx_queue_setup(id(), queue, tx_descriptors, socket, &tx),
            "rte_eth_tx_queue_setup", object);
  }

  tx_offload_ = {.ip_checksum = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0,
                 .udp_checksum = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0};
  tx_chains_ = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  partial_checksums_ = leaves_checksums_partial(info.driver_name);
  spdlog::info(
      "port {}: driver {}, NUMA node {}, {} of {} queues, {} + {} descriptors a queue, checksums "
      "received {}, sent {}, results to several workers {}",
      name_, info.driver_name, socket_, queues_, info.max_rx_queues, rx_descriptors, tx_descriptors,
      (conf.rxmode.offloads & kRxChecksums) == kRxChecksums ? "by the device" : "in software",
      tx_offload_.udp_checksum ? "by the device" : "in software",
      tx_chains_ ? "share one payload" : "are copied");
}

// Physical links take seconds to come up after a start; a virtual one may wait for its peer.
void Port::wait_for_link() const {
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(id(), &info) != 0) return;
  if (std::string_view{rte_bus_name(rte_dev_bus(info.device))} != "vdev") {
    constexpr auto kPatience = std::chrono::seconds(9);
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!link_up() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  if (!link_up()) spdlog::warn("port {}: link down", name_);
}

MacAddress Port::mac() const {
  rte_ether_addr address{};
  require(rte_eth_macaddr_get(id(), &address), "rte_eth_macaddr_get", name_);
  MacAddress mac;
  std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), mac.bytes.begin());
  return mac;
}

bool Port::link_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(id(), &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

Port::Device::~Device() {
  if (const int error = rte_eth_dev_stop(id); error != 0) {
    spdlog::warn("{}", describe_failure("rte_eth_dev_stop", "the port", error));
  }
  if (const int error = rte_eth_dev_close(id); error != 0) {
    spdlog::warn("{}", describe_failure("rte_eth_dev_close", "the port", error));
  }
}

}  // namespace natagg::aggregator::io
