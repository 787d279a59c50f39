// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Writes natagg packets as a capture file: pcap with nanoseconds, Ethernet, IPv4, UDP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/endpoint.hpp"

struct pcap;
struct pcap_dumper;

namespace natagg::tools {

class TraceWriter {
 public:
  /// Throws std::runtime_error naming the file when it cannot be created.
  explicit TraceWriter(const std::string& path);

  /// `time` is ns since 1970; `datagram` has at most 65,507 bytes.
  void write(std::int64_t time, const proto::Endpoint& from, const proto::Endpoint& to,
             std::span<const std::byte> datagram);

  /// Throws std::runtime_error when not all could be written. Without it, nobody hears of that.
  void close();

 private:
  struct CloseCapture {
    void operator()(pcap* capture) const;
  };
  struct CloseDumper {
    void operator()(pcap_dumper* dumper) const;
  };

  std::string path_;
  std::unique_ptr<pcap, CloseCapture> capture_;
  std::unique_ptr<pcap_dumper, CloseDumper> dumper_;
  std::vector<std::byte> frame_;
};

}  // namespace natagg::tools
