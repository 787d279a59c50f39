// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Plays stories that are drawn from seeds. The environment says which seeds, and what is kept of
// them:
//
//   NATAGG_SIM_SEEDS=n       so many (default 10,000), or of stories that take long one in so many
//   NATAGG_SIM_FIRST=s       from seed s on (default 0)
//   NATAGG_SIM_PART=i/k      every k-th of these, from the i-th on
//   NATAGG_SIM_SEED=s        seed s alone, with a line for each datagram
//   NATAGG_SIM_SHRINK=1      with that, the least story to which a failing seed's shrinks instead
//   NATAGG_SIM_TRACE=f.pcap  writes a trace for natagg-replay: of NATAGG_SIM_SEED, with
//                            NATAGG_SIM_SHRINK of its least story, otherwise of the least story of
//                            the first seed that fails
//
// A seed that fails is reported with how to replay it, with the story as drawn, and with the least
// story to which the steps of shrink.hpp lead: it fails too, though perhaps of something else. The
// same build finds the same one again, which is how it is replayed. A process writes one trace, of
// the first story that has one to write; natagg-replay plays those without keys, partial results
// and corruption, and says for which of these it refuses another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "simulation/recording.hpp"
#include "simulation/shrink.hpp"

namespace natagg::simulation {

/// The seeds first, first + step, ..., and what is kept of them.
struct Playing {
  std::uint64_t first = 0;
  std::uint64_t count = 1;
  std::uint64_t step = 1;
  std::ostream* alone = nullptr;  // one seed is asked for, with every datagram
  bool shrink = false;            // of its least story
  std::string trace_path = {};    // empty: none
};

/// As the environment says, for a story of which one in `one_in` seeds is played.
[[nodiscard]] Playing playing_from_environment(std::uint64_t one_in);

/// A story, of whatever type, that was drawn from a seed.
class DrawnStory {
 public:
  DrawnStory() = default;
  DrawnStory(const DrawnStory&) = delete;
  DrawnStory& operator=(const DrawnStory&) = delete;
  virtual ~DrawnStory() = default;

  /// What is wrong; empty when nothing is.
  [[nodiscard]] virtual std::vector<std::string> play(const Recording& recording) const = 0;
  /// Becomes the least story that still fails; returns how often it was played for that.
  virtual int shrink() = 0;
  [[nodiscard]] virtual std::string describe() const = 0;
};

template <typename Story>
class DrawnStoryOf : public DrawnStory {
 public:
  explicit DrawnStoryOf(Story story) : story_(std::move(story)) {}

  [[nodiscard]] std::vector<std::string> play(const Recording& recording) const override {
    return story_.play(recording);
  }
  int shrink() override {
    const auto steps = [](const Story& story) { return story.simplifications(); };
    const auto fails = [](const Story& story) { return !story.play({}).empty(); };
    auto shrunk = simulation::shrink<Story>(std::move(story_), steps, fails);
    story_ = std::move(shrunk.story);
    return shrunk.plays;
  }
  [[nodiscard]] std::string describe() const override { return story_.describe(); }

 private:
  Story story_;
};

/// Each seed that fails is a failure of the test, and the fifth is the last. `draw` gives a seed's
/// story.
void play_seeds(const Playing& playing,
                const std::function<std::unique_ptr<DrawnStory>(std::uint64_t)>& draw);

/// As the environment says, one seed for every `one_in`. A story can be compared, and has
///   std::vector<std::string> play(const Recording&) const;     // what is wrong
///   Simplifications<Story> simplifications() const;            // to stories that must not fail
///   std::string describe() const;
template <typename Story>
void play_seeds(const Playing& playing, const std::function<Story(std::uint64_t)>& draw) {
  play_seeds(playing, [&](std::uint64_t seed) -> std::unique_ptr<DrawnStory> {
    return std::make_unique<DrawnStoryOf<Story>>(draw(seed));
  });
}

}  // namespace natagg::simulation
