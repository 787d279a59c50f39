// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-rank-udp: no all-reduce, but the floor under one of a single packet. Rank 0 sends as
// many bytes as natagg would, and rank 1 sends them back, each from a blocking socket.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "proto/packet.hpp"
#include "tools/bench/rank_program.hpp"

namespace natagg::bench {
namespace {

struct UdpOptions {
  std::string address;  // of this rank
  std::string peer;     // of the other
  std::uint32_t rank = 0;
};

constexpr std::uint16_t kPort = 4791;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in address_of(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  if (::inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) {
    throw std::runtime_error(text + " is no IPv4 address");
  }
  return address;
}

class UdpReducer : public Reducer {
 public:
  UdpReducer(const UdpOptions& options, const RankOptions& rank_options)
      : rank_(options.rank),
        packet_(sizeof(proto::Header) + rank_options.count),
        socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (socket_ < 0) fail("socket");
    const sockaddr_in own = address_of(options.address);
    const sockaddr_in peer = address_of(options.peer);
    constexpr timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) fail("bind");
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
      fail("connect");
    }
  }
  ~UdpReducer() override { ::close(socket_); }

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t world() const override { return 2; }
  [[nodiscard]] std::uint64_t longest_row() const override { return 1000; }

  void fill(TensorValues, std::size_t) override {
    // Rank 1 gets its bytes from rank 0.
    for (std::size_t i = 0; i < packet_.size(); ++i) packet_[i] = rank_ == 0 ? value(i) : 0;
  }

  void reduce(std::span<const TensorValues>) override {
    if (rank_ == 0) send();
    receive();
    if (rank_ == 1) send();
  }

  void check(TensorValues, std::size_t) override {
    for (std::size_t i = 0; i < packet_.size(); ++i) {
      if (packet_[i] != value(i)) {
        throw std::runtime_error("check failed: byte " + std::to_string(i) + " has changed");
      }
    }
  }

 private:
  static std::uint8_t value(std::size_t i) { return static_cast<std::uint8_t>(i * 7 + 1); }

  void send() {
    if (::send(socket_, packet_.data(), packet_.size(), 0) < 0) fail("send");
  }

  void receive() {
    const ssize_t got = ::recv(socket_, packet_.data(), packet_.size(), 0);
    if (got < 0) fail("recv");
    if (static_cast<std::size_t>(got) != packet_.size()) throw std::runtime_error("a short packet");
  }

  std::uint32_t rank_;
  std::vector<std::uint8_t> packet_;
  int socket_;
};

}  // namespace
}  // namespace natagg::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  natagg::bench::UdpOptions udp;
  po::options_description own("UDP");
  own.add_options()                                                            //
      ("address", po::value(&udp.address)->required(), "of this rank")         //
      ("peer", po::value(&udp.peer)->required(), "address of the other rank")  //
      ("rank", po::value(&udp.rank)->required(), "of this process, 0 or 1");
  return natagg::bench::run_rank(argc, argv, own, [&](const natagg::bench::RankOptions& options) {
    return std::make_unique<natagg::bench::UdpReducer>(udp, options);
  });
}
