// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/socket_network.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace natagg::tools {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr int kReceiveBuffer = 4 << 20;
constexpr std::size_t kLargestDatagram = 65'536;
constexpr int kSendAttempts = 1000;

[[noreturn]] void fail(const std::string& call) {
  throw std::system_error(errno, std::generic_category(), call);
}

/// Whether an ICMP message came in place of a datagram; the port may open yet.
bool passes(int error) {
  return error == ECONNREFUSED || error == EAGAIN || error == EINTR;
}

}  // namespace

SocketNetwork::SocketNetwork(worker::Local local)
    : local_(std::move(local)), poll_(::epoll_create1(EPOLL_CLOEXEC)), buffer_(kLargestDatagram) {
  if (poll_.get() < 0) fail("epoll_create1");
}

std::size_t SocketNetwork::open(const proto::Endpoint& to) {
  const std::string name = proto::to_string(to);
  worker::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) fail("socket for " + name);
  const int discover = IP_PMTUDISC_DO;
  ::setsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
  // As much as the kernel grants: --in-flight is for the rest.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer));
  worker::bind_local(socket.get(), local_);
  const sockaddr_in address = worker::to_sockaddr(to);
  if (::connect(socket.get(), worker::generic(&address), sizeof(address)) != 0) {
    fail("connect for " + name);
  }
  epoll_event event{.events = EPOLLIN, .data = {.fd = socket.get()}};
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, event.data.fd, &event) != 0) {
    fail("epoll_ctl for " + name);
  }
  sockets_.push_back(std::move(socket));
  return sockets_.size() - 1;
}

void SocketNetwork::send(std::size_t way, std::span<const std::byte> datagram) {
  for (int attempt = 0; attempt < kSendAttempts; ++attempt) {
    if (::send(sockets_[way].get(), datagram.data(), datagram.size(), 0) >= 0) return;
    if (errno == ENOBUFS) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else if (!passes(errno)) {
      fail("send of " + std::to_string(datagram.size()) + " bytes");
    }
  }
}

void SocketNetwork::receive(std::int64_t nanoseconds, const OnDatagram& on_datagram) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(nanoseconds / kMillisecond));
  for (int i = 0; i < count; ++i) {
    const int socket = events[static_cast<std::size_t>(i)].data.fd;
    for (;;) {
      const ssize_t size = ::recv(socket, buffer_.data(), buffer_.size(), 0);
      if (size < 0) break;
      on_datagram({buffer_.data(), static_cast<std::size_t>(size)});
    }
  }
}

}  // namespace natagg::tools
