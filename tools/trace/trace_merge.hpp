// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The natagg packets of one or several capture files in the order of their times: recordings of all
// workers of a job make one trace of it. A file's own order is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/trace/trace_reader.hpp"

namespace natagg::tools {

class TraceMerge {
 public:
  /// Throws TraceError where a path is no capture that TraceReader takes, or has no natagg packet.
  explicit TraceMerge(const std::vector<std::string>& paths);

  /// As TraceReader's, with the earliest packet of all at kFirstPacket.
  [[nodiscard]] std::optional<TracePacket> next();

  [[nodiscard]] std::uint64_t foreign() const;
  /// For errors about the whole: "a.pcap", or "a.pcap and 2 more".
  [[nodiscard]] std::string name() const;

 private:
  struct File {
    TraceReader reader;
    std::optional<TracePacket> next;
    std::int64_t offset = 0;  // to be added to the reader's times
  };

  void align();

  std::vector<File> files_;
  File* last_ = nullptr;  // whose packet the caller has
};

}  // namespace natagg::tools
