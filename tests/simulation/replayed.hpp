// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What natagg-replay makes of the traces of stories.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulation/recording.hpp"
#include "trace/capture_file.hpp"

namespace natagg::simulation {

struct Replayed {
  std::uint64_t answers = 0;          // that came again, right
  std::vector<std::string> findings;  // what is wrong with traces that were played, or with answers
  std::vector<std::string> refusals;  // why others were not played
};

/// Adds what comes of replaying the trace at `path`.
void replay(const std::string& path, Replayed& replayed);

/// Of the stories of seeds 0, 1, ... . They must play well.
template <typename Story>
[[nodiscard]] Replayed replay_traces(const std::function<Story(std::uint64_t)>& draw,
                                     std::uint64_t seeds) {
  const testing::TemporaryPath path("story.pcap");
  Replayed replayed;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (const std::string& violation : draw(seed).play({.trace_path = path.string()})) {
      replayed.findings.push_back("when first played: " + violation);
    }
    replay(path.string(), replayed);
  }
  return replayed;
}

}  // namespace natagg::simulation
