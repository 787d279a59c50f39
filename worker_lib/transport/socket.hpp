// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A file descriptor that closes itself, and the IPv4 socket address of an endpoint.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "proto/endpoint.hpp"

namespace natagg::worker {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const { return fd_; }

  /// Makes an eventfd unreadable.
  void reset_event() const {
    std::uint64_t count = 0;
    // When it is 0 already, nothing is lost.
    [[maybe_unused]] const ssize_t size = ::read(fd_, &count, sizeof count);
  }

 private:
  int fd_ = -1;
};

[[nodiscard]] inline sockaddr_in to_sockaddr(const proto::Endpoint& endpoint) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(endpoint.address);
  address.sin_port = htons(endpoint.port);
  return address;
}

[[nodiscard]] inline proto::Endpoint to_endpoint(const sockaddr_in& address) {
  return {.address = ntohl(address.sin_addr.s_addr), .port = ntohs(address.sin_port)};
}

/// The only casts between the socket interface's address types.
[[nodiscard]] inline const sockaddr* generic(const sockaddr_in* address) {
  return reinterpret_cast<const sockaddr*>(address);
}
[[nodiscard]] inline sockaddr* generic(sockaddr_in* address) {
  return reinterpret_cast<sockaddr*>(address);
}

}  // namespace natagg::worker
