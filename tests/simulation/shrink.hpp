// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// From a story that fails to a simple one that still does. Stories are values that can be compared;
// what makes one simpler is said by functions that change it, a step each.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "simulation/scenario.hpp"

namespace natagg::simulation {

/// Makes a story simpler, or leaves it as it is where there is nothing to be done.
template <typename Story>
using Simplification = std::function<void(Story&)>;
template <typename Story>
using Simplifications = std::vector<Simplification<Story>>;

/// Of a scenario of that many operations and ranks, the boldest first: fewer operations and ranks,
/// no network faults, all settings their defaults, everybody in time, short and plain operations.
/// One operation and one rank stay, and operations keep their types. What decides whether a job
/// finds room stays as it is: max_jobs, max_workers, pool and connect_within.
[[nodiscard]] Simplifications<Scenario> simplifications(const Scenario& scenario);

/// Those of a part of a story: `part` finds it, and may have to look again after another
/// simplification (null: it is gone).
template <typename Story, typename Part>
void append_of_part(Simplifications<Story>& all, Simplifications<Part> of_part,
                    std::function<Part*(Story&)> part) {
  for (Simplification<Part>& simplify : of_part) {
    all.push_back([simplify = std::move(simplify), part](Story& story) {
      if (Part* found = part(story)) simplify(*found);
    });
  }
}

/// The same, each of which `settle` then brings in line with what the story is about. A step whose
/// outcome it refuses by false is not taken.
template <typename Story>
[[nodiscard]] Simplifications<Story> settled(Simplifications<Story> all,
                                             const std::function<bool(Story&)>& settle) {
  for (Simplification<Story>& simplify : all) {
    simplify = [bold = std::move(simplify), settle](Story& story) {
      Story less = story;
      bold(less);
      if (settle(less)) story = std::move(less);
    };
  }
  return all;
}

template <typename Story>
struct Shrunk {
  Story story;
  int plays = 0;  // that it took
};

/// More are seldom of use.
inline constexpr int kMostPlays = 300;

/// Takes each step for as long as the story still `fails`, until none helps any more or
/// `most_plays` have been tried. `story` fails; `steps` gives those for a story. The same arguments
/// give the same result.
template <typename Story>
[[nodiscard]] Shrunk<Story> shrink(Story story,
                                   const std::function<Simplifications<Story>(const Story&)>& steps,
                                   const std::function<bool(const Story&)>& fails,
                                   int most_plays = kMostPlays) {
  int plays = 0;
  for (bool helped = true; helped;) {
    helped = false;
    for (const Simplification<Story>& simplify : steps(story)) {
      for (;;) {
        Story less = story;
        simplify(less);
        if (less == story) break;
        if (plays == most_plays) return {std::move(story), plays};
        ++plays;
        if (!fails(less)) break;
        story = std::move(less);
        helped = true;
      }
    }
  }
  return {std::move(story), plays};
}

}  // namespace natagg::simulation
