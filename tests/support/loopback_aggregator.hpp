// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// An aggregator in a thread of the test: the shipped shards behind plain UDP sockets on
// consecutive ports of 127.0.0.1, where the daemon has DPDK.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "proto/packet.hpp"

namespace natagg::testing {

class LoopbackAggregator {
 public:
  /// `config` is every shard's, but for index and shards.
  explicit LoopbackAggregator(std::uint16_t shards = 1, aggregator::ShardConfig config = {}) {
    open_sockets(shards);
    config.shards = shards;
    for (config.index = 0; config.index < shards; ++config.index) shards_.emplace_back(config);
    thread_ = std::thread([this] { run(); });
  }
  LoopbackAggregator(const LoopbackAggregator&) = delete;
  LoopbackAggregator& operator=(const LoopbackAggregator&) = delete;
  ~LoopbackAggregator() {
    stop_ = true;
    thread_.join();
    close_sockets();
  }

  /// As Options::aggregators takes it.
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(first_port_); }

  /// From now on hears and says nothing, as if its machine had died.
  void mute() { muted_ = true; }

  /// Well-formed datagrams of `type` that have arrived.
  [[nodiscard]] std::uint64_t received(proto::Type type) const {
    return received_[static_cast<std::size_t>(type)];
  }

 private:
  static constexpr std::size_t kTypes = 32;

  /// Binds consecutive ports; where the kernel picks one with a taken neighbour, tries again.
  void open_sockets(std::uint16_t shards) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      first_port_ = 0;
      while (sockets_.size() < shards && open_socket(static_cast<std::uint16_t>(sockets_.size()))) {
      }
      if (sockets_.size() == shards) return;
      close_sockets();
    }
    throw std::runtime_error("no consecutive free UDP ports on 127.0.0.1");
  }

  bool open_socket(std::uint16_t index) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return false;
    sockets_.push_back(socket);
    const int buffer = 4 << 20;
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    const in_addr loopback{.s_addr = htonl(INADDR_LOOPBACK)};
    ::setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = loopback;
    address.sin_port = htons(static_cast<std::uint16_t>(index == 0 ? 0 : first_port_ + index));
    if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      ::close(socket);
      sockets_.pop_back();
      return false;
    }
    socklen_t size = sizeof address;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    if (index == 0) first_port_ = ntohs(address.sin_port);
    return true;
  }

  void close_sockets() {
    for (const int socket : sockets_) ::close(socket);
    sockets_.clear();
  }

  static aggregator::Time now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void run() {
    std::vector<pollfd> polled;
    for (const int socket : sockets_)
      polled.push_back({.fd = socket, .events = POLLIN, .revents = 0});
    while (!stop_) {
      ::poll(polled.data(), polled.size(), 5);
      for (std::size_t i = 0; i < shards_.size(); ++i) serve(i);
    }
  }

  void serve(std::size_t index) {
    for (;;) {
      sockaddr_in source{};
      socklen_t size = sizeof source;
      const ssize_t length = ::recvfrom(sockets_[index], buffer_.data(), buffer_.size(), 0,
                                        reinterpret_cast<sockaddr*>(&source), &size);
      if (length < 0) break;
      if (muted_) continue;
      const std::span datagram(buffer_.data(), static_cast<std::size_t>(length));
      if (proto::validate(datagram, proto::Keys::kSome) == proto::Reject::kNone) {
        ++received_[static_cast<std::size_t>(proto::read_header(datagram).type)];
      }
      const aggregator::Peer peer{
          .endpoint = {.address = ntohl(source.sin_addr.s_addr), .port = ntohs(source.sin_port)}};
      send(index, shards_[index].receive(datagram, peer, now()));
    }
    if (!muted_) send(index, shards_[index].tick(now()));
  }

  void send(std::size_t index, std::span<const aggregator::Outgoing> outgoing) {
    for (const aggregator::Outgoing& packet : outgoing) {
      const auto* body = reinterpret_cast<const std::byte*>(packet.body.data());
      datagram_.assign(packet.head.begin(), packet.head.end());
      datagram_.insert(datagram_.end(), body, body + packet.body.size());
      datagram_.resize(datagram_.size() + packet.padding);
      datagram_.insert(datagram_.end(), packet.tail.begin(), packet.tail.end());
      for (const aggregator::Peer& peer : packet.to) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(peer.endpoint.address);
        address.sin_port = htons(peer.endpoint.port);
        ::sendto(sockets_[index], datagram_.data(), datagram_.size(), 0,
                 reinterpret_cast<sockaddr*>(&address), sizeof address);
      }
    }
  }

  std::uint16_t first_port_ = 0;
  std::vector<int> sockets_;
  std::vector<aggregator::Shard> shards_;
  std::array<std::byte, 65536> buffer_{};
  std::vector<std::byte> datagram_;
  std::array<std::atomic<std::uint64_t>, kTypes> received_{};
  std::atomic<bool> muted_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace natagg::testing
