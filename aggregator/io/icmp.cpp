// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/icmp.hpp"

#include "proto/net/checksum.hpp"

namespace natagg::aggregator::io {
namespace {

constexpr std::uint8_t kEchoReply = 0;
constexpr std::uint8_t kEchoRequest = 8;

}  // namespace

IoCounter check_echo(std::span<const std::byte> message) {
  if (message.size() < sizeof(IcmpEcho) || ones_sum(message) != 0xFFFF) {
    return IoCounter::kDropIcmpMalformed;
  }
  const auto echo = read_at<IcmpEcho>(message, 0);
  const bool request = echo.type == kEchoRequest && echo.code == 0;
  return request ? IoCounter::kRxEcho : IoCounter::kDropIcmpType;
}

std::size_t answer_echo(std::span<std::byte> frame, std::size_t network, const Host& self) {
  auto ethernet = read_at<EthernetHeader>(frame, 0);
  ethernet.destination = ethernet.source;
  ethernet.source = self.mac;
  write_at(frame, 0, ethernet);

  auto ip = read_at<Ipv4Header>(frame, network);
  const std::size_t length = ip.total_length.value();
  ip.destination = ip.source;
  ip.source = proto::Be32{self.address};
  ip.id = proto::Be16{0};
  ip.fragment = proto::Be16{kDontFragment};
  ip.ttl = kTtl;
  ip.checksum = proto::Be16{0};
  write_at(frame, network, ip);
  const auto complement = [](std::uint16_t sum) {
    return proto::Be16{static_cast<std::uint16_t>(~sum)};
  };
  ip.checksum = complement(ones_sum(frame.subspan(network, sizeof(Ipv4Header))));
  write_at(frame, network, ip);

  const auto message = frame.subspan(network + sizeof(Ipv4Header), length - sizeof(Ipv4Header));
  auto echo = read_at<IcmpEcho>(message, 0);
  echo.type = kEchoReply;
  echo.checksum = proto::Be16{0};
  write_at(message, 0, echo);
  echo.checksum = complement(ones_sum(message));
  write_at(message, 0, echo);
  return network + length;
}

}  // namespace natagg::aggregator::io
