// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Capture files in pcap's classic format, which is a 24-byte header and 16 bytes a frame.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "daemon/frames.hpp"

namespace natagg::testing {

inline void write_pcap(const std::string& path, const std::vector<Bytes>& frames) {
  std::ofstream file(path, std::ios::binary);
  // The reader takes the byte order from the magic number. Version 2.4, Ethernet.
  Writer text;
  text.u32(0xA1B2C3D4).u16(2).u16(4).u32(0).u32(0).u32(65535).u32(1);
  for (const Bytes& frame : frames) {
    const auto size = static_cast<std::uint32_t>(frame.size());
    text.u32(0).u32(0).u32(size).u32(size).bytes(frame);
  }
  const Bytes bytes = text.take();
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// The frames of a capture that this machine wrote.
inline std::vector<Bytes> read_pcap(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<Bytes> frames;
  for (std::size_t at = 24; at + 16 <= text.size();) {
    std::uint32_t size = 0;
    std::memcpy(&size, text.data() + at + 8, sizeof(size));
    at += 16;
    if (at + size > text.size()) break;
    const auto* data = reinterpret_cast<const std::byte*>(text.data() + at);
    frames.emplace_back(data, data + size);
    at += size;
  }
  return frames;
}

}  // namespace natagg::testing
