// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/udp.hpp"

#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "proto/net/headers.hpp"
#include "worker_lib/error.hpp"

namespace natagg::worker {
namespace {

/// How long a full send buffer may hold up the thread before datagrams are given up: a few
/// buffers' time on a slow link, and less than the shortest retransmission time-out.
constexpr int kSendPatienceMs = 4;

bool set_option(int socket, int level, int name, int value) {
  return ::setsockopt(socket, level, name, &value, sizeof value) == 0;
}

FileDescriptor open_socket() {
  FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) {
    throw_system_error(errno, "socket(AF_INET, SOCK_DGRAM)", "`ulimit -n` limits open files");
  }
  return socket;
}

/// Datagrams that `socket` has dropped because its buffer was full. SO_MEMINFO needs neither
/// /proc nor a control message a packet.
std::uint64_t dropped(int socket) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t size = sizeof values;
  if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, values.data(), &size) != 0) return 0;
  return values[SK_MEMINFO_DROPS];
}

/// Errors of a packet that was to be cut up which say that the device or the route cannot have it
/// so, or the kernel not at all.
bool refuses_segmentation(int error) {
  return error == EIO || error == EINVAL || error == EMSGSIZE || error == ENOPROTOOPT ||
         error == EOPNOTSUPP;
}

}  // namespace

UdpTransport::UdpTransport(const UdpConfig& config)
    : multicast_(config.multicast),
      gso_(config.gso),
      receive_batch_(config.gso ? Merging::kOn : Merging::kOff) {
  for (const proto::Endpoint& aggregator : config.aggregators) {
    const Route route = find_route(aggregator, config.local);
    mtu_ = std::min(mtu_, route.mtu);
    if (source_ == 0) source_ = route.source;
    if (std::ranges::find(interfaces_, route.interface_index) == interfaces_.end()) {
      interfaces_.push_back(route.interface_index);
    }
  }

  wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_.get() < 0) throw_system_error(errno, "eventfd()", "`ulimit -n` limits open files");
  polled_.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});

  FileDescriptor socket = open_socket();
  // PROBE sets "don't fragment" and ignores what the kernel believes about the path: the stream
  // finds the packet size by probing, and only that way sees what really arrives.
  if (!set_option(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)) {
    throw_system_error(errno, "setsockopt(IP_MTU_DISCOVER)", "");
  }
  // Where the kernel allows no more, queues on the way drop packets instead of marking them.
  set_option(socket.get(), IPPROTO_IP, IP_TOS, net::kEcnCapable);
  bind_local(socket.get(), config.local);
  // 0 changes nothing, and a kernel that does not know the option says so.
  segments_ = gso_ && set_option(socket.get(), SOL_UDP, UDP_SEGMENT, 0);
  add_socket(std::move(socket));
}

void UdpTransport::add_socket(FileDescriptor socket) {
  set_option(socket.get(), IPPROTO_IP, IP_RECVTOS, 1);
  if (gso_) set_option(socket.get(), SOL_UDP, UDP_GRO, 1);  // older kernels give single datagrams
  polled_.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
  sockets_.push_back(std::move(socket));
}

proto::Endpoint UdpTransport::local() const {
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (::getsockname(unicast(), generic(&own), &size) != 0) {
    throw_system_error(errno, "getsockname()", "");
  }
  return {.address = source_, .port = to_endpoint(own).port};
}

std::size_t UdpTransport::reserve_buffers(std::size_t bytes) {
  // The kernel doubles the number, so half the range of int is the most that can be asked for.
  buffer_request_ = static_cast<int>(std::min<std::size_t>(bytes, INT_MAX / 2));
  if (!set_option(unicast(), SOL_SOCKET, SO_RCVBUF, buffer_request_) ||
      !set_option(unicast(), SOL_SOCKET, SO_SNDBUF, buffer_request_)) {
    throw_system_error(errno, "setsockopt(SO_RCVBUF, " + std::to_string(buffer_request_) + ")", "");
  }
  int granted = 0;
  socklen_t size = sizeof granted;
  if (::getsockopt(unicast(), SOL_SOCKET, SO_RCVBUF, &granted, &size) != 0) {
    throw_system_error(errno, "getsockopt(SO_RCVBUF)", "");
  }
  return static_cast<std::size_t>(granted);
}

bool UdpTransport::join(const proto::Endpoint& group) {
  if (!multicast_) return false;
  FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) return false;
  // Bound to the group's own address, the socket hears nothing else; SO_REUSEADDR lets every
  // worker of this host bind it, and each gets a copy.
  const sockaddr_in address = to_sockaddr(group);
  if (!set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1) ||
      ::bind(socket.get(), generic(&address), sizeof address) != 0 ||
      !join_on_interfaces(socket.get(), group)) {
    return false;
  }
  if (buffer_request_ > 0) set_option(socket.get(), SOL_SOCKET, SO_RCVBUF, buffer_request_);
  add_socket(std::move(socket));
  return true;
}

bool UdpTransport::join_on_interfaces(int socket, const proto::Endpoint& group) const {
  bool joined = false;
  for (const int interface : interfaces_) {
    ip_mreqn membership{};
    membership.imr_multiaddr.s_addr = htonl(group.address);
    membership.imr_ifindex = interface;
    joined |=
        ::setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) == 0;
  }
  return joined;
}

void UdpTransport::send(std::span<const Outgoing> datagrams) {
  while (!datagrams.empty()) {
    const std::size_t count = std::min(datagrams.size(), kBatch);
    send_batch(datagrams.first(count));
    datagrams = datagrams.subspan(count);
  }
}

void UdpTransport::send_batch(std::span<const Outgoing> datagrams) {
  const bool segments = segments_;
  std::span<mmsghdr> messages = send_batch_.prepare(datagrams, segments);
  std::size_t done = 0;
  while (!messages.empty()) {
    const std::size_t count = send_some(messages);
    for (const mmsghdr& message : messages.first(count)) done += message.msg_hdr.msg_iovlen;
    messages = messages.subspan(count);
    // What the kernel would not cut up goes out as it is.
    if (segments && !segments_) return send_batch(datagrams.subspan(done));
  }
}

/// Returns how many of `messages` are done with, sent or counted as failed: 0 when the kernel has
/// turned out not to segment, and else at least 1.
std::size_t UdpTransport::send_some(std::span<mmsghdr> messages) {
  for (;;) {
    const int sent = ::sendmmsg(unicast(), messages.data(), static_cast<unsigned>(messages.size()),
                                MSG_DONTWAIT);
    if (sent > 0) {
      count_segmented(messages.first(static_cast<std::size_t>(sent)));
      return static_cast<std::size_t>(sent);
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      if (wait_writable()) continue;
      for (const mmsghdr& message : messages) send_failures_ += message.msg_hdr.msg_iovlen;
      return messages.size();
    }
    const std::size_t datagrams = messages.front().msg_hdr.msg_iovlen;
    if (datagrams > 1 && refuses_segmentation(errno)) {
      segmentation_error_ = errno;
      segments_ = false;
      return 0;
    }
    // EMSGSIZE is a probe's answer, ECONNREFUSED and ENOBUFS are worth another try later; all
    // others may pass too. The stream sends again what matters, and its deadlines end the rest.
    send_failures_ += datagrams;
    if (errno != EMSGSIZE && errno != ECONNREFUSED) last_send_error_ = errno;
    return 1;
  }
}

void UdpTransport::count_segmented(std::span<const mmsghdr> messages) {
  for (const mmsghdr& message : messages) {
    if (message.msg_hdr.msg_iovlen > 1) segmented_ += message.msg_hdr.msg_iovlen;
  }
}

bool UdpTransport::wait_writable() {
  pollfd writable{.fd = unicast(), .events = POLLOUT, .revents = 0};
  const int ready = ::poll(&writable, 1, kSendPatienceMs);
  return ready > 0 || (ready < 0 && errno == EINTR);
}

std::span<const Incoming> UdpTransport::receive() {
  // The unicast socket first: a group's first packets make sense only after WELCOME.
  while (next_socket_ < sockets_.size()) {
    const std::span<const Incoming> batch = receive_batch_.receive(sockets_[next_socket_].get());
    if (receive_batch_.drained()) ++next_socket_;  // not worth a call that says so
    if (!batch.empty()) return batch;
  }
  next_socket_ = 0;
  return {};
}

void UdpTransport::wait(Time nanoseconds) {
  constexpr Time second = 1'000'000'000;
  constexpr Time longest = 3600 * second;  // early is allowed, and time_t may be 32 bits
  const Time bounded = std::clamp<Time>(nanoseconds, 0, longest);
  const timespec timeout{.tv_sec = static_cast<time_t>(bounded / second),
                         .tv_nsec = static_cast<long>(bounded % second)};
  if (::ppoll(polled_.data(), polled_.size(), &timeout, nullptr) <= 0) return;
  if (polled_.front().revents != 0) wake_.reset_event();
}

void UdpTransport::wake() {
  const std::uint64_t one = 1;
  // Fails only when 2^64 - 2 calls are pending already, which wake as well.
  [[maybe_unused]] const ssize_t size = ::write(wake_.get(), &one, sizeof one);
}

TransportStats UdpTransport::stats() const {
  TransportStats stats{.send_failures = send_failures_,
                       .last_send_error = last_send_error_,
                       .segmented = segmented_,
                       .merged = receive_batch_.merged(),
                       .segmentation_error = segmentation_error_};
  for (const FileDescriptor& socket : sockets_) stats.kernel_drops += dropped(socket.get());
  return stats;
}

}  // namespace natagg::worker
