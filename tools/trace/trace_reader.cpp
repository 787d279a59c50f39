// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/trace_reader.hpp"

#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "proto/packet.hpp"

namespace natagg::tools {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;
using ErrorText = std::array<char, PCAP_ERRBUF_SIZE>;

/// Whether what is known of a payload could be the beginning of a natagg packet.
bool may_be_natagg(std::span<const std::byte> payload) {
  constexpr std::array<std::byte, 3> beginning{
      std::byte{proto::kMagic >> 8}, std::byte{proto::kMagic & 0xFF}, std::byte{proto::kVersion}};
  const std::size_t known = std::min(payload.size(), beginning.size());
  return std::equal(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(known),
                    beginning.begin());
}

/// Length of the datagram that `payload` begins with. A capture on a sending host may show several
/// in one, which leave the host apart (UDP segmentation offload): those of values say how long
/// they are.
std::size_t datagram_length(std::span<const std::byte> payload) {
  if (payload.size() <= sizeof(proto::Header)) return payload.size();
  const proto::Header header = proto::read_header(payload);
  const std::size_t length = sizeof(proto::Header) + header.count.value();
  if (header.count.value() == 0 || length >= payload.size()) return payload.size();
  return may_be_natagg(payload.subspan(length)) ? length : payload.size();
}

}  // namespace

void TraceReader::Close::operator()(pcap* capture) const {
  pcap_close(capture);
}

std::string to_string(const PacketPlace& place) {
  const std::string packet = "packet " + std::to_string(place.number);
  return place.file == 0 ? packet : packet + " of file " + std::to_string(place.file);
}

std::optional<std::int64_t> time_between(const timeval& from, const timeval& to) {
  constexpr std::int64_t kLongest = std::int64_t{10} * 365 * 24 * 3600;  // s
  std::int64_t seconds = 0;
  if (__builtin_sub_overflow(to.tv_sec, from.tv_sec, &seconds) || std::abs(seconds) > kLongest) {
    return std::nullopt;
  }
  return seconds * kNanoseconds + to.tv_usec - from.tv_usec;
}

TraceReader::TraceReader(const std::string& path, std::uint32_t file) : name_(path) {
  packet_.place.file = file;
  ErrorText error{};
  capture_.reset(pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO,
                                                         error.data()));
  // libpcap's text may have the path already.
  if (!capture_) throw TraceError("cannot read the trace " + path + ": " + error.data());
  check_link();
}

TraceReader::TraceReader(std::FILE* file, std::string name) : name_(std::move(name)) {
  ErrorText error{};
  capture_.reset(
      pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error.data()));
  if (!capture_) {
    std::fclose(file);
    throw TraceError("cannot read the trace " + name_ + ": " + error.data());
  }
  check_link();
}

void TraceReader::check_link() {
  const int type = pcap_datalink(capture_.get());
  switch (type) {
    case DLT_EN10MB: link_ = Link::kEthernet; return;
    case DLT_RAW:
    case DLT_IPV4: link_ = Link::kRawIpv4; return;
    case DLT_LINUX_SLL: link_ = Link::kCooked; return;
    case DLT_LINUX_SLL2: link_ = Link::kCooked2; return;
    default: break;
  }
  const char* name = pcap_datalink_val_to_name(type);
  throw TraceError(name_ + ": its link type is " + (name != nullptr ? name : "unknown") + " (" +
                   std::to_string(type) +
                   "), not Ethernet, raw IPv4 or Linux cooked: record on another interface");
}

std::optional<TracePacket> TraceReader::next() {
  for (;;) {
    while (!rest_.empty()) {
      if (take_datagram()) return packet_;
    }
    if (!read_frame()) return std::nullopt;
  }
}

std::int64_t TraceReader::time_of(const timeval& stamp) {
  if (!first_) first_ = stamp;
  const auto since = time_between(*first_, stamp);
  if (!since) refuse("was captured more than ten years before or after the first");
  return kFirstPacket + *since;
}

bool TraceReader::read_frame() {
  pcap_pkthdr* header = nullptr;
  const unsigned char* data = nullptr;
  const int result = pcap_next_ex(capture_.get(), &header, &data);
  if (result == PCAP_ERROR_BREAK) return false;
  ++packet_.place.number;
  if (result != 1) refuse(std::string("cannot be read: ") + pcap_geterr(capture_.get()));
  const auto found = find_datagram(link_, std::as_bytes(std::span(data, header->caplen)));
  if (!found || !may_be_natagg(found->payload) || found->length < sizeof(proto::Header)) {
    ++foreign_;
    return true;
  }
  if (found->fragment) {
    refuse("is an IP fragment; natagg sends none, so something on the path cuts its packets");
  }
  if (found->payload.size() < found->length) {
    refuse("is cut to " + std::to_string(found->payload.size()) + " of " +
           std::to_string(found->length) + " bytes: record with tcpdump -s 0");
  }
  packet_.time = time_of(header->ts);
  packet_.from = found->from;
  packet_.to = found->to;
  rest_ = found->payload;
  return true;
}

/// False when the next datagram of this frame is not natagg's.
bool TraceReader::take_datagram() {
  packet_.datagram = rest_.first(datagram_length(rest_));
  rest_ = rest_.subspan(packet_.datagram.size());
  if (proto::validate(packet_.datagram, proto::Keys::kSome) != proto::Reject::kNone) {
    ++foreign_;
    return false;
  }
  if ((proto::read_header(packet_.datagram).flags & proto::kFlagAuthenticated) != 0) {
    refuse("is authenticated: its MAC holds for the session in which it was sent alone");
  }
  return true;
}

void TraceReader::refuse(const std::string& why) const {
  throw TraceError(name_ + ": packet " + std::to_string(packet_.place.number) + " " + why);
}

}  // namespace natagg::tools
