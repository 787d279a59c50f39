// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/envelope.hpp"

#include <span>

#include "proto/net/checksum.hpp"

namespace natagg::aggregator::io {
namespace {

template <typename T>
std::uint16_t header_sum(const T& header) {
  return ones_sum(std::as_bytes(std::span{&header, 1}));
}

std::size_t write_link(std::span<std::byte> out, const Host& self, const Peer& to) {
  const Link link = unpack_link(to.link);
  const bool multicast = is_multicast(to.endpoint.address);
  const std::uint16_t type = link.tci != 0 ? kEtherVlan : kEtherIpv4;
  write_at(out, 0,
           EthernetHeader{
               .destination = multicast ? multicast_mac(to.endpoint.address) : link.mac,
               .source = self.mac,
               .type = proto::Be16{type},
           });
  if (link.tci == 0) return sizeof(EthernetHeader);
  write_at(out, sizeof(EthernetHeader),
           VlanTag{.tci = proto::Be16{link.tci}, .type = proto::Be16{kEtherIpv4}});
  return sizeof(EthernetHeader) + sizeof(VlanTag);
}

}  // namespace

Envelope make_envelope(const Host& self, std::uint16_t source_port, const Peer& to, Payload payload,
                       Offload offload) {
  Envelope envelope;
  const std::size_t network = write_link(envelope.bytes, self, to);
  const auto udp_length = static_cast<std::uint16_t>(sizeof(UdpHeader) + payload.length);

  Ipv4Header ip{};
  ip.version_and_words = kIpv4NoOptions;
  ip.service = kEcnCapable;
  ip.total_length = proto::Be16{static_cast<std::uint16_t>(sizeof(Ipv4Header) + udp_length)};
  ip.fragment = proto::Be16{kDontFragment};
  ip.ttl = is_multicast(to.endpoint.address) ? kMulticastTtl : kTtl;
  ip.protocol = kProtocolUdp;
  ip.source = proto::Be32{self.address};
  ip.destination = proto::Be32{to.endpoint.address};
  if (!offload.ip_checksum) {
    ip.checksum = proto::Be16{static_cast<std::uint16_t>(~header_sum(ip))};
  }
  write_at(envelope.bytes, network, ip);

  UdpHeader udp{};
  udp.source = proto::Be16{source_port};
  udp.destination = proto::Be16{to.endpoint.port};
  udp.length = proto::Be16{udp_length};
  const std::uint16_t pseudo =
      pseudo_header_sum(self.address, to.endpoint.address, kProtocolUdp, udp_length);
  if (offload.udp_checksum) {
    udp.checksum = proto::Be16{pseudo};
  } else if (!offload.no_udp_checksum) {
    const std::uint16_t sum = ones_add(ones_add(pseudo, header_sum(udp)), payload.sum);
    // A computed zero is sent as its other form, since zero means "no checksum" (RFC 768).
    udp.checksum = proto::Be16{sum == 0xFFFF ? sum : static_cast<std::uint16_t>(~sum)};
  }
  write_at(envelope.bytes, network + sizeof(Ipv4Header), udp);

  envelope.link_length = static_cast<std::uint16_t>(network);
  envelope.length = static_cast<std::uint16_t>(network + sizeof(Ipv4Header) + sizeof(UdpHeader));
  return envelope;
}

}  // namespace natagg::aggregator::io
