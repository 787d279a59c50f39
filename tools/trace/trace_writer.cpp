// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/trace_writer.hpp"

#include <pcap/pcap.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "proto/net/checksum.hpp"
#include "proto/net/headers.hpp"

namespace natagg::tools {
namespace {

namespace io = net;
using proto::Be16;
using proto::Be32;

constexpr std::int64_t kNanoseconds = 1'000'000'000;
constexpr int kSnapLength = 262'144;  // the most that tools take for granted
constexpr std::size_t kIp = sizeof(io::EthernetHeader);
constexpr std::size_t kUdp = kIp + sizeof(io::Ipv4Header);
constexpr std::size_t kPayload = kUdp + sizeof(io::UdpHeader);

bool is_group(std::uint32_t address) {
  return address >> 28 == 0xE;
}

/// A locally administered one of the host's own, or the group's by RFC 1112.
io::MacAddress mac_of(std::uint32_t address) {
  const auto byte = [address](unsigned i) { return static_cast<std::uint8_t>(address >> (8 * i)); };
  if (is_group(address)) {
    return {{0x01, 0x00, 0x5E, static_cast<std::uint8_t>(byte(2) & 0x7F), byte(1), byte(0)}};
  }
  return {{0x02, 0x00, byte(3), byte(2), byte(1), byte(0)}};
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw std::runtime_error("cannot write the trace " + path + ": " + why);
}

}  // namespace

void TraceWriter::CloseCapture::operator()(pcap* capture) const {
  pcap_close(capture);
}

void TraceWriter::CloseDumper::operator()(pcap_dumper* dumper) const {
  pcap_dump_close(dumper);
}

TraceWriter::TraceWriter(const std::string& path)
    : path_(path),
      capture_(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength,
                                                    PCAP_TSTAMP_PRECISION_NANO)) {
  if (!capture_) fail(path, "no memory");
  dumper_.reset(pcap_dump_open(capture_.get(), path.c_str()));
  if (!dumper_) fail(path, pcap_geterr(capture_.get()));
}

void TraceWriter::write(std::int64_t time, const proto::Endpoint& from, const proto::Endpoint& to,
                        std::span<const std::byte> datagram) {
  frame_.resize(kPayload + datagram.size());
  const std::span<std::byte> frame(frame_);
  io::write_at(frame, 0,
               io::EthernetHeader{.destination = mac_of(to.address),
                                  .source = mac_of(from.address),
                                  .type = Be16{io::kEtherIpv4}});
  io::Ipv4Header ip{
      .version_and_words = io::kIpv4NoOptions,
      .service = 0,
      .total_length = Be16{static_cast<std::uint16_t>(frame_.size() - kIp)},
      .id = {},
      .fragment = Be16{io::kDontFragment},
      .ttl = is_group(to.address) ? io::kMulticastTtl : io::kTtl,
      .protocol = io::kProtocolUdp,
      .checksum = {},
      .source = Be32{from.address},
      .destination = Be32{to.address},
  };
  const auto sum = io::ones_sum(std::as_bytes(std::span(&ip, 1)));
  ip.checksum = Be16{static_cast<std::uint16_t>(~sum)};
  io::write_at(frame, kIp, ip);
  io::write_at(frame, kUdp,
               io::UdpHeader{.source = Be16{from.port},
                             .destination = Be16{to.port},
                             .length = Be16{static_cast<std::uint16_t>(frame_.size() - kUdp)},
                             .checksum = {}});  // none, which IPv4 allows
  std::ranges::copy(datagram, frame_.begin() + kPayload);

  pcap_pkthdr header{};
  header.ts.tv_sec = time / kNanoseconds;
  header.ts.tv_usec = time % kNanoseconds;  // of a file with nanoseconds
  header.caplen = header.len = static_cast<bpf_u_int32>(frame_.size());
  // libpcap's calling convention: the dumper stands for "the user's argument".
  pcap_dump(reinterpret_cast<u_char*>(dumper_.get()), &header,
            reinterpret_cast<const u_char*>(frame_.data()));
}

void TraceWriter::close() {
  const bool failed =
      pcap_dump_flush(dumper_.get()) != 0 || std::ferror(pcap_dump_file(dumper_.get())) != 0;
  const int error = errno;
  dumper_.reset();
  if (failed) fail(path_, std::generic_category().message(error));
}

}  // namespace natagg::tools
