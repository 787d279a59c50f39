// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/ethdev_transport.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "worker_lib/error.hpp"
#include "worker_lib/transport/carrier.hpp"
#include "worker_lib/transport/eal.hpp"
#include "worker_lib/transport/igmp.hpp"

namespace natagg::worker {
namespace {

/// How long a full device may hold up the thread in one send() before datagrams are given up, and
/// how often it looks meanwhile.
constexpr Time kSendPatience = 4'000'000;
constexpr long kLook_ns = 20'000;

/// Between two looks at a device from which nothing comes. What is under way fits its queue, so
/// that the longest costs time alone.
constexpr Time kShortestPause = 10'000;
constexpr Time kLongestPause = 2'000'000;

/// How long the first datagrams may wait for an answer to ARP.
constexpr Time kFirstAnswers = 50'000'000;

/// Between unasked reports on memberships, of which any may be lost; questions are answered at
/// once.
constexpr Time kBetweenReports = 10'000'000'000;

Time now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::span<std::byte> bytes_of(rte_mbuf& frame) {
  return {rte_pktmbuf_mtod(&frame, std::byte*), frame.data_len};
}

/// With that length. The caller has checked that it fits.
std::span<std::byte> resize(rte_mbuf& frame, std::size_t length) {
  frame.data_len = static_cast<std::uint16_t>(length);
  frame.pkt_len = frame.data_len;
  return bytes_of(frame);
}

}  // namespace

Carrier make_ethdev(const EthdevConfig& config) {
  start_eal(config.eal_arguments);
  auto transport = std::make_unique<EthdevTransport>(config);
  const EthdevPort& port = transport->port();
  Carrier carrier;
  carrier.local = transport->local();
  carrier.mtu = port.mtu();
  // The rest is for what others send.
  carrier.in_flight = std::max<std::size_t>(1, port.capacity() / 2);
  carrier.receive_buffer_bytes = port.capacity() * port.frame_bytes();
  carrier.transport = std::move(transport);
  return carrier;
}

EthdevTransport::EthdevTransport(const EthdevConfig& config)
    : port_(config.device),
      self_(make_station(config.local, config.identity)),
      multicast_(config.multicast),
      neighbours_(config.aggregators),
      pause_(kShortestPause) {
  self_.mac = port_.mac();
  wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_.get() < 0) throw_system_error(errno, "eventfd()", "`ulimit -n` limits open files");
  meet_neighbours();
}

EthdevTransport::~EthdevTransport() {
  rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(incoming_count_));
  for (; taken_next_ != taken_end_; ++taken_next_) rte_pktmbuf_free(taken_[taken_next_]);
}

/// Sends what `write` makes of a frame of that length. What the device does not take at once is not
/// worth waiting for.
template <typename Write>
void EthdevTransport::send_control(std::size_t length, Write&& write) {
  rte_mbuf* mbuf = port_.make_frame();
  if (mbuf == nullptr) return;
  write(resize(*mbuf, length));
  if (port_.give({&mbuf, 1}) == 0) rte_pktmbuf_free(mbuf);
}

bool EthdevTransport::join(const proto::Endpoint& group) {
  if (!multicast_) return false;
  port_.hear_multicast();
  self_.groups.push_back(group);
  report_memberships(now());
  return true;
}

void EthdevTransport::report_memberships(Time now) {
  next_report_ = now + kBetweenReports;
  for (const proto::Endpoint& group : self_.groups) {
    send_control(kReportFrame, [&](std::span<std::byte> frame) {
      write_membership_report(frame, self_, group.address);
    });
  }
}

/// The stream's first datagrams go out once, and then again only after long.
void EthdevTransport::meet_neighbours() {
  const Time end = now() + kFirstAnswers;
  for (Time time = now(); time < end && !neighbours_.all_known(); time = now()) {
    ask_for_neighbours(time);
    wait(kShortestPause);
    static_cast<void>(receive());
  }
}

void EthdevTransport::ask_for_neighbours(Time now) {
  neighbours_.ask_when_due(now, [this](std::uint32_t address) {
    send_control(kArpFrame,
                 [&](std::span<std::byte> frame) { write_arp_request(frame, self_, address); });
  });
}

// --- Sending ---

void EthdevTransport::send(std::span<const Outgoing> datagrams) {
  const Time start = now();
  const Time patience_ends = start + kSendPatience;
  ask_for_neighbours(start);
  if (start >= next_report_) report_memberships(start);
  for (const Outgoing& datagram : datagrams) {
    if (!add(datagram)) ++send_failures_;
    if (outgoing_count_ == kBurst) flush(patience_ends);
  }
  flush(patience_ends);
  pause_ = kShortestPause;
}

bool EthdevTransport::add(const Outgoing& datagram) {
  const std::span<const std::byte> bytes = datagram.datagram;
  const net::MacAddress* const mac = neighbours_.find(datagram.to.address);
  if (mac == nullptr || kFrameHeaders + bytes.size() > port_.mtu() + sizeof(net::EthernetHeader)) {
    return false;
  }
  rte_mbuf* const mbuf = port_.make_frame();
  if (mbuf == nullptr) return false;
  const std::span<std::byte> frame = resize(*mbuf, kFrameHeaders + bytes.size());
  write_frame_headers(frame, self_, *mac, datagram.to, bytes.size());
  std::memcpy(frame.data() + kFrameHeaders, bytes.data(), bytes.size());
  if (port_.adds_checksums()) {
    write_pseudo_checksum(frame);
    EthdevPort::mark_for_checksum(*mbuf);
  } else {
    write_udp_checksum(frame);
  }
  outgoing_[outgoing_count_++] = mbuf;
  return true;
}

void EthdevTransport::flush(Time patience_ends) {
  std::span<rte_mbuf*> rest(outgoing_.data(), std::exchange(outgoing_count_, 0));
  while (!rest.empty()) {
    rest = rest.subspan(port_.give(rest));
    if (rest.empty()) return;
    if (now() >= patience_ends) break;
    const timespec look{.tv_sec = 0, .tv_nsec = kLook_ns};
    ::nanosleep(&look, nullptr);
  }
  send_failures_ += rest.size();
  rte_pktmbuf_free_bulk(rest.data(), static_cast<unsigned>(rest.size()));
}

// --- Receiving ---

std::span<const Incoming> EthdevTransport::receive() {
  rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(incoming_count_));
  incoming_count_ = 0;
  const Time time = now();
  while (incoming_count_ < kBatch) {
    if (taken_next_ == taken_end_) take_burst();
    if (taken_next_ == taken_end_) break;
    rte_mbuf* const frame = taken_[taken_next_++];
    if (!keeps(*frame, time)) rte_pktmbuf_free(frame);
  }
  return {incoming_.data(), incoming_count_};
}

void EthdevTransport::take_burst() {
  taken_next_ = 0;
  taken_end_ = port_.take(taken_);
}

/// Whether the frame is a datagram for this worker, and so part of the batch.
bool EthdevTransport::keeps(const rte_mbuf& frame, Time now) {
  if (frame.nb_segs != 1) return false;
  const std::span<const std::byte> bytes{rte_pktmbuf_mtod(&frame, const std::byte*),
                                         frame.data_len};
  const Received received = read_frame(bytes, self_);
  if (const auto* neighbour = std::get_if<Neighbour>(&received)) {
    neighbours_.learn(*neighbour);
    if (neighbour->asks) {
      send_control(kArpFrame,
                   [&](std::span<std::byte> reply) { write_arp_reply(reply, self_, *neighbour); });
    }
    return false;
  }
  const auto* datagram = std::get_if<Datagram>(&received);
  if (datagram == nullptr) {
    if (!self_.groups.empty() && is_membership_query(bytes)) report_memberships(now);
    return false;
  }
  neighbours_.hear(datagram->source.address, now);
  held_[incoming_count_] = const_cast<rte_mbuf*>(&frame);
  incoming_[incoming_count_++] = {
      .datagram = datagram->bytes, .source = datagram->source, .congested = datagram->congested};
  return true;
}

// --- Waiting ---

void EthdevTransport::wait(Time nanoseconds) {
  constexpr Time kLongest = 3'600'000'000'000;  // early is allowed
  const Time end = now() + std::min(nanoseconds, kLongest);
  for (;;) {
    if (taken_next_ == taken_end_) take_burst();
    if (taken_next_ != taken_end_) {
      pause_ = kShortestPause;
      return;
    }
    const Time left = end - now();
    if (left <= 0 || sleep(std::min(left, pause_))) return;
    pause_ = std::min(2 * pause_, kLongestPause);
  }
}

/// Whether wake() ended it.
bool EthdevTransport::sleep(Time nanoseconds) {
  pollfd polled{.fd = wake_.get(), .events = POLLIN, .revents = 0};
  const timespec timeout{.tv_sec = 0, .tv_nsec = static_cast<long>(nanoseconds)};
  if (::ppoll(&polled, 1, &timeout, nullptr) <= 0) return false;
  wake_.reset_event();
  return true;
}

void EthdevTransport::wake() {
  const std::uint64_t one = 1;
  // Fails only when 2^64 - 2 calls are pending already, which wake as well.
  [[maybe_unused]] const ssize_t size = ::write(wake_.get(), &one, sizeof one);
}

TransportStats EthdevTransport::stats() const {
  TransportStats stats{.kernel_drops = port_.missed(), .send_failures = send_failures_};
  if (!port_.link_up()) {
    stats.last_send_error = ENETDOWN;
  } else if (!neighbours_.any_known()) {
    stats.last_send_error = EHOSTUNREACH;
  }
  return stats;
}

}  // namespace natagg::worker
