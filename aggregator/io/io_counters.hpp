// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a lcore counts outside its shard, each with the one name that logs, telemetry and
// documentation use. A frame received ends in one row of rx_ or drop_ (or address_conflicts)
// besides rx_frames; one that is handed over is counted again by the lcore that takes it over.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace natagg::aggregator::io {

enum class IoCounter : std::uint8_t {
  kRxFrames = 0,
  kRxBytes,
  kRxDatagrams,
  kRxHandedOver,
  kRxArp,
  kRxEcho,
  kDropRunt,
  kDropOtherMac,
  kDropBadSource,
  kDropQinq,
  kDropEtherType,
  kDropArpMalformed,
  kDropArpOther,
  kDropIpMalformed,
  kDropIpOptions,
  kDropIpFragment,
  kDropIpLength,
  kDropIpChecksum,
  kDropIpAddress,
  kDropIpProtocol,
  kDropUdpLength,
  kDropUdpPort,
  kDropUdpChecksum,
  kDropIcmpMalformed,
  kDropIcmpType,
  kDropChained,
  kDropHandoffFull,
  kDropInjected,
  kTxFrames,
  kTxBytes,
  kTxRelayed,
  kTxRetries,
  kTxDropFull,
  kTxDropRelayFull,
  kTxDropNoBuffer,
  kTxDropTooLong,
  kTxDropInjected,
  kAddressConflicts,
  kSleeps,
};

struct IoCounterInfo {
  IoCounter counter;
  std::string_view name;
  std::string_view help;
};

inline constexpr std::array kIoCounters = {
    IoCounterInfo{IoCounter::kRxFrames, "rx_frames", "frames received"},
    IoCounterInfo{IoCounter::kRxBytes, "rx_bytes", "bytes received, without Ethernet's CRC"},
    IoCounterInfo{IoCounter::kRxDatagrams, "rx_datagrams", "UDP payloads given to the shard"},
    IoCounterInfo{IoCounter::kRxHandedOver, "rx_handed_over", "given to another shard's lcore"},
    IoCounterInfo{IoCounter::kRxArp, "rx_arp", "ARP requests answered"},
    IoCounterInfo{IoCounter::kRxEcho, "rx_echo", "ICMP echo requests answered"},
    IoCounterInfo{IoCounter::kDropRunt, "drop_runt", "shorter than its headers"},
    IoCounterInfo{IoCounter::kDropOtherMac, "drop_other_mac", "for another MAC address"},
    IoCounterInfo{IoCounter::kDropBadSource, "drop_bad_source", "source cannot be answered"},
    IoCounterInfo{IoCounter::kDropQinq, "drop_qinq", "more than one VLAN tag"},
    IoCounterInfo{IoCounter::kDropEtherType, "drop_ether_type", "neither IPv4 nor ARP"},
    IoCounterInfo{IoCounter::kDropArpMalformed, "drop_arp_malformed", "not ARP for IPv4"},
    IoCounterInfo{IoCounter::kDropArpOther, "drop_arp_other", "no request for this address"},
    IoCounterInfo{IoCounter::kDropIpMalformed, "drop_ip_malformed", "not an IPv4 header"},
    IoCounterInfo{IoCounter::kDropIpOptions, "drop_ip_options", "IPv4 options"},
    IoCounterInfo{IoCounter::kDropIpFragment, "drop_ip_fragment", "IPv4 fragments"},
    IoCounterInfo{IoCounter::kDropIpLength, "drop_ip_length", "IPv4 length beyond the frame"},
    IoCounterInfo{IoCounter::kDropIpChecksum, "drop_ip_checksum", "IPv4 header checksum"},
    IoCounterInfo{IoCounter::kDropIpAddress, "drop_ip_address", "for another IPv4 address"},
    IoCounterInfo{IoCounter::kDropIpProtocol, "drop_ip_protocol", "neither UDP nor ICMP"},
    IoCounterInfo{IoCounter::kDropUdpLength, "drop_udp_length", "UDP length not IPv4's"},
    IoCounterInfo{IoCounter::kDropUdpPort, "drop_udp_port", "UDP port of no shard"},
    IoCounterInfo{IoCounter::kDropUdpChecksum, "drop_udp_checksum", "UDP checksum"},
    IoCounterInfo{IoCounter::kDropIcmpMalformed, "drop_icmp_malformed", "ICMP checksum or length"},
    IoCounterInfo{IoCounter::kDropIcmpType, "drop_icmp_type", "ICMP other than echo request"},
    IoCounterInfo{IoCounter::kDropChained, "drop_chained", "frame longer than one buffer"},
    IoCounterInfo{IoCounter::kDropHandoffFull, "drop_handoff_full", "other lcore's ring full"},
    IoCounterInfo{IoCounter::kDropInjected, "drop_injected", "datagrams dropped by inject_loss_rx"},
    IoCounterInfo{IoCounter::kTxFrames, "tx_frames", "frames given to the device"},
    IoCounterInfo{IoCounter::kTxBytes, "tx_bytes", "bytes given to the device"},
    IoCounterInfo{IoCounter::kTxRelayed, "tx_relayed", "frames given to a queue's lcore to send"},
    IoCounterInfo{IoCounter::kTxRetries, "tx_retries", "bursts the device took only in part"},
    IoCounterInfo{IoCounter::kTxDropFull, "tx_drop_full", "device queue stayed full"},
    IoCounterInfo{IoCounter::kTxDropRelayFull, "tx_drop_relay_full", "ring to queue's lcore full"},
    IoCounterInfo{IoCounter::kTxDropNoBuffer, "tx_drop_no_buffer", "buffer pool empty"},
    IoCounterInfo{IoCounter::kTxDropTooLong, "tx_drop_too_long", "datagram longer than the MTU"},
    IoCounterInfo{IoCounter::kTxDropInjected, "tx_drop_injected", "dropped by inject_loss_tx"},
    IoCounterInfo{IoCounter::kAddressConflicts, "address_conflicts",
                  "ARP packets from another host with this address"},
    IoCounterInfo{IoCounter::kSleeps, "sleeps", "naps of an idle lcore (idle = polite)"},
};

/// Every row stands at its counter's number, so the table can be indexed by it.
consteval bool io_counters_in_order() {
  for (std::size_t i = 0; i < kIoCounters.size(); ++i) {
    if (static_cast<std::size_t>(kIoCounters[i].counter) != i) return false;
  }
  return kIoCounters.back().counter == IoCounter::kSleeps;
}
static_assert(io_counters_in_order());

/// One writer, the lcore; other threads read the copy it publishes.
class IoCounters {
 public:
  void add(IoCounter counter, std::uint64_t n = 1) {
    values_[static_cast<std::size_t>(counter)] += n;
  }
  [[nodiscard]] std::uint64_t operator[](IoCounter counter) const {
    return values_[static_cast<std::size_t>(counter)];
  }
  [[nodiscard]] const std::array<std::uint64_t, kIoCounters.size()>& values() const {
    return values_;
  }

 private:
  std::array<std::uint64_t, kIoCounters.size()> values_{};
};

}  // namespace natagg::aggregator::io
