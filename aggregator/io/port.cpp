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
#include "proto/net/virtual_device.hpp"

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

const char* checksums_sent(const Offload& offload) {
  if (offload.no_udp_checksum) return "left out";
  return offload.udp_checksum ? "by the device" : "in software";
}

/// Bytes that the driver wants a receive buffer to hold.
std::uint32_t buffer_bytes(const rte_eth_dev_info& info, std::uint32_t mtu) {
  constexpr std::uint32_t kCrc = 4;
  // A peer may send longer frames than it should, and net_memif copies what it finds.
  if (is_shared_memory(info.driver_name)) mtu = std::max(mtu, kSharedMemoryMtu);
  const std::uint32_t frame =
      mtu + static_cast<std::uint32_t>(sizeof(EthernetHeader) + sizeof(VlanTag)) + kCrc;
  std::uint32_t bytes = std::max(frame, info.min_rx_bufsize);
  if (info.driver_name == std::string_view{"net_af_xdp"}) {
    bytes = std::max(bytes, frame + kXdpHeadroom);
  }
  if (info.driver_name == std::string_view{"net_af_packet"}) {
    const rte_devargs* arguments = rte_dev_devargs(info.device);
    bytes = std::max(bytes, af_packet_frame_size(arguments != nullptr ? arguments->args : ""));
  }
  return bytes;
}

/// Of a buffer, with all that is around it.
std::uint32_t object_bytes(const rte_mempool* pool) {
  return pool->header_size + pool->elt_size + pool->trailer_size;
}

}  // namespace

Port::Port(std::uint16_t id, std::uint16_t number, std::uint32_t mtu, unsigned lcores)
    : device_{id}, number_(number), lcores_(lcores) {
  char name[RTE_ETH_NAME_MAX_LEN];
  require(rte_eth_dev_get_name_by_port(id, name), "rte_eth_dev_get_name_by_port",
          fmt::format("port {}", id));
  name_ = name;
  configure(mtu);
}

void Port::configure(std::uint32_t wanted_mtu) {
  rte_eth_dev_info info{};
  require(rte_eth_dev_info_get(id(), &info), "rte_eth_dev_info_get", name_);
  queues_ = choose_queues(info, lcores_, name_);
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
  buffer_bytes_ = buffer_bytes(info, mtu_);

  rx_descriptors_ = descriptors(info.default_rxportconf.ring_size);
  tx_descriptors_ = descriptors(info.default_txportconf.ring_size);
  require(rte_eth_dev_adjust_nb_rx_tx_desc(id(), &rx_descriptors_, &tx_descriptors_),
          "rte_eth_dev_adjust_nb_rx_tx_desc", name_);

  shared_memory_ = is_shared_memory(info.driver_name);
  keeps_buffers_ = keeps_buffers(info.driver_name);
  tx_offload_ = {.ip_checksum = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) != 0,
                 .udp_checksum = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0,
                 .no_udp_checksum = shared_memory_};
  tx_chains_ = (conf.txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  partial_checksums_ = leaves_checksums_partial(info.driver_name);
  spdlog::info(
      "port {}: driver {}, NUMA node {}, {} of {} queues, {} + {} descriptors a queue, checksums "
      "received {}, sent {}, results to several workers {}",
      name_, info.driver_name, socket_, queues_, info.max_rx_queues, rx_descriptors_,
      tx_descriptors_,
      (conf.rxmode.offloads & kRxChecksums) == kRxChecksums ? "by the device" : "in software",
      checksums_sent(tx_offload_), tx_chains_ ? "share one payload" : "are copied");
}

void Port::add_needs(PoolNeeds& needs) const {
  if (!shared_memory_) {
    needs.received += std::uint32_t{queues_} * rx_descriptors_;
    needs.sent += std::uint32_t{queues_} * tx_descriptors_;
  }
  needs.kept = needs.kept || keeps_buffers_;
  if (lcores_ > queues_) needs.outboxes += queues_;
  needs.frame_bytes = std::max(needs.frame_bytes, buffer_bytes_);
}

void Port::start(const Pools& pools) {
  // From the size of a burst's buffers net_memif concludes how long its pieces can be, and copies
  // them without a look at the room in the ring.
  header_pool_ = shared_memory_ ? pools.frames() : pools.headers();
  set_up_queues(pools.frames());
  require(rte_eth_dev_start(id()), "rte_eth_dev_start", name_);
  wait_for_link();
}

void Port::set_up_queues(rte_mempool* frames) const {
  rte_eth_dev_info info{};
  require(rte_eth_dev_info_get(id(), &info), "rte_eth_dev_info_get", name_);
  rte_eth_rxconf rx = info.default_rxconf;
  rx.offloads = kRxChecksums & info.rx_offload_capa & info.rx_queue_offload_capa;
  rte_eth_txconf tx = info.default_txconf;
  tx.offloads = kTxWanted & info.tx_offload_capa & info.tx_queue_offload_capa;
  if (info.driver_name == std::string_view{"net_af_xdp"} && object_bytes(frames) > kXdpPage) {
    throw std::runtime_error(
        fmt::format("{}: net_af_xdp cannot share the buffers of {} bytes that a device beside it "
                    "needs; give one of the two a daemon of its own",
                    name_, object_bytes(frames)));
  }
  const auto socket = static_cast<unsigned>(socket_);
  for (std::uint16_t queue = 0; queue < queues_; ++queue) {
    const std::string object = fmt::format("{} queue {}", name_, queue);
    require(rte_eth_rx_queue_setup(id(), queue, rx_descriptors_, socket, &rx, frames),
            "rte_eth_rx_queue_setup", object);
    require(rte_eth_tx_queue_setup(id(), queue, tx_descriptors_, socket, &tx),
            "rte_eth_tx_queue_setup", object);
  }
}

std::optional<std::uint16_t> Port::queue_of(std::uint16_t lcore) const {
  if (queues_ > 1) return lcore < queues_ ? std::optional(lcore) : std::nullopt;
  return number_ % lcores_ == lcore ? std::optional<std::uint16_t>(0) : std::nullopt;
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
