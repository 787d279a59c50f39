// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Reads the natagg packets of a capture file, pcap or pcapng, one after the other: a trace of any
// size takes the memory of one packet. Packets are known by what they hold, on any ports, in both
// directions; whatever else the file holds is passed over.
#pragma once

#include <sys/time.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "proto/endpoint.hpp"
#include "tools/trace/captured_frame.hpp"

struct pcap;

namespace natagg::tools {

/// Why a trace cannot be read or replayed; names the file and, where there is one, the packet.
class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Capture tools have set their clocks to any year; only differences count.
inline constexpr std::int64_t kFirstPacket = std::int64_t{24} * 3600 * 1'000'000'000;

/// From one time of a file with nanoseconds to another, in ns; nothing when that is more than ten
/// years, which no trace spans.
[[nodiscard]] std::optional<std::int64_t> time_between(const timeval& from, const timeval& to);

/// Which packet of a trace. As text "packet 3", or "packet 3 of file 2" in a trace of several.
struct PacketPlace {
  std::uint64_t number = 0;  // in its file, from 1, as capture tools count; 0: none
  std::uint32_t file = 0;    // from 1 in the order they were given; 0: the only one

  auto operator<=>(const PacketPlace&) const = default;
};
[[nodiscard]] std::string to_string(const PacketPlace& place);

struct TracePacket {
  PacketPlace place;
  std::int64_t time = 0;  // ns; the first that is natagg's has kFirstPacket
  proto::Endpoint from;
  proto::Endpoint to;
  std::span<const std::byte> datagram;  // valid by proto::validate(); until the next call
};

class TraceReader {
 public:
  /// Throws TraceError where `path` is no capture of a link that is understood. `file` goes into
  /// the packets' places.
  explicit TraceReader(const std::string& path, std::uint32_t file = 0);

  /// Likewise, reading `file` and closing it in the end; `name` is for errors.
  TraceReader(std::FILE* file, std::string name);

  /// The next natagg packet, or nothing after the last. Throws TraceError for one that no replay
  /// can take: cut short by the capture, a fragment, authenticated, or not readable.
  [[nodiscard]] std::optional<TracePacket> next();

  /// Packets so far that are not natagg's.
  [[nodiscard]] std::uint64_t foreign() const { return foreign_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// When natagg's first packet was captured, by the file's clock: since 1970, with ns in the place
  /// of the us. Nothing before it has been read.
  [[nodiscard]] const std::optional<timeval>& started() const { return first_; }

 private:
  struct Close {
    void operator()(pcap* capture) const;
  };

  void check_link();
  [[nodiscard]] bool read_frame();
  [[nodiscard]] std::int64_t time_of(const timeval& stamp);
  [[nodiscard]] bool take_datagram();
  [[noreturn]] void refuse(const std::string& why) const;

  std::string name_;
  std::unique_ptr<pcap, Close> capture_;
  Link link_ = Link::kEthernet;
  TracePacket packet_;
  std::span<const std::byte> rest_;  // of the frame's payload, behind packet_.datagram
  std::uint64_t foreign_ = 0;
  std::optional<timeval> first_;  // natagg's
};

}  // namespace natagg::tools
