// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Capture files byte by byte, as other tools write them, so that tests can change what a trace
// says. Nothing here uses the reader or writer under test, or libpcap.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace natagg::testing {

using Bytes = std::vector<std::byte>;

struct Record {
  std::uint64_t seconds = 0;   // pcapng alone has room for more than 32 bits
  std::uint32_t fraction = 0;  // ns
  std::uint32_t length = 0;    // on the wire
  Bytes bytes;
};

struct CaptureFile {
  std::uint32_t link = 1;  // Ethernet
  std::vector<Record> records;
};

inline constexpr std::uint32_t kNanosecondMagic = 0xA1B2'3C4D;
inline constexpr std::size_t kFileHeader = 24;
inline constexpr std::size_t kRecordHeader = 16;
// Of a frame that TraceWriter makes.
inline constexpr std::size_t kIpAt = 14;
inline constexpr std::size_t kUdpAt = 34;
inline constexpr std::size_t kPayloadAt = 42;

/// A path that is free for the test, and is removed with the object.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("natagg-" + std::to_string(::getpid()) + "-" + name)) {}
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  ~TemporaryPath() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void append(Bytes& bytes, std::uint32_t number, std::size_t size = 4) {
  const auto* begin = reinterpret_cast<const std::byte*>(&number);  // this machine's order
  bytes.insert(bytes.end(), begin, begin + size);
}

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

inline CaptureFile read_capture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CaptureFile capture;
  std::memcpy(&capture.link, text.data() + 20, sizeof(capture.link));
  for (std::size_t at = kFileHeader; at + kRecordHeader <= text.size();) {
    std::uint32_t numbers[4];
    std::memcpy(numbers, text.data() + at, sizeof(numbers));
    at += kRecordHeader;
    const auto* data = reinterpret_cast<const std::byte*>(text.data() + at);
    capture.records.push_back({numbers[0], numbers[1], numbers[3], {data, data + numbers[2]}});
    at += numbers[2];
  }
  return capture;
}

inline void write_capture(const std::string& path, const CaptureFile& capture) {
  Bytes bytes;
  append(bytes, kNanosecondMagic);
  append(bytes, 2, 2);
  append(bytes, 4, 2);
  for (const std::uint32_t number : {0U, 0U, 262'144U, capture.link}) append(bytes, number);
  for (const Record& record : capture.records) {
    const auto captured = static_cast<std::uint32_t>(record.bytes.size());
    for (const std::uint32_t number :
         {static_cast<std::uint32_t>(record.seconds), record.fraction, captured, record.length}) {
      append(bytes, number);
    }
    bytes.insert(bytes.end(), record.bytes.begin(), record.bytes.end());
  }
  write_file(path, bytes);
}

/// As pcapng, with the default resolution of microseconds.
inline void write_pcapng(const std::string& path, const CaptureFile& capture) {
  Bytes bytes;
  for (const std::uint32_t number :
       {0x0A0D'0D0AU, 28U, 0x1A2B'3C4DU, 1U, 0xFFFF'FFFFU, 0xFFFF'FFFFU, 28U}) {
    append(bytes, number);
  }
  for (const std::uint32_t number : {1U, 20U, capture.link, 0U, 20U}) append(bytes, number);
  for (const Record& record : capture.records) {
    const auto captured = static_cast<std::uint32_t>(record.bytes.size());
    const std::uint32_t padded = (captured + 3) / 4 * 4;
    const std::uint64_t time = record.seconds * 1'000'000 + record.fraction / 1000;
    for (const std::uint32_t number : {6U, 32 + padded, 0U, static_cast<std::uint32_t>(time >> 32),
                                       static_cast<std::uint32_t>(time), captured, record.length}) {
      append(bytes, number);
    }
    bytes.insert(bytes.end(), record.bytes.begin(), record.bytes.end());
    bytes.resize(bytes.size() + padded - captured);
    append(bytes, 32 + padded);
  }
  write_file(path, bytes);
}

}  // namespace natagg::testing
