// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What is kept of a story while it is played: a line for each datagram, and a trace for
// natagg-replay of what the aggregators receive and send.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "simulation/world.hpp"
#include "tools/trace/trace_writer.hpp"

namespace natagg::simulation {

/// Nothing, unless it says so.
struct Recording {
  std::ostream* lines = nullptr;
  std::string trace_path = {};  // empty: none
};

/// Writes a world's trace from now on, where the recording wants one.
class Recorder {
 public:
  /// `world` outlives this, and this the rest of its run. Throws std::runtime_error naming the file
  /// when it cannot be created.
  Recorder(World& world, const Recording& recording);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// The run is over. Throws std::runtime_error when not all could be written.
  void close();

 private:
  std::optional<tools::TraceWriter> writer_;
};

}  // namespace natagg::simulation
