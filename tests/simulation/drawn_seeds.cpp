// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/drawn_seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <set>
#include <sstream>

namespace natagg::simulation {
namespace {

constexpr std::uint64_t kDefaultSeeds = 10'000;
constexpr int kMostReports = 5;
constexpr std::size_t kMostViolations = 6;  // of one story

/// Empty when it is not set.
std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::optional<std::uint64_t> number(const char* name) {
  const std::string text = environment(name);
  if (text.empty()) return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 10);
}

std::string test_name() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(test->test_suite_name()) + '.' + test->name();
}

/// False when this process has written it already.
bool may_write(const std::string& path) {
  static std::set<std::string> written;
  return !path.empty() && written.insert(path).second;
}

std::string text_of(const DrawnStory& story, const std::vector<std::string>& violations) {
  std::string text = story.describe();
  const std::size_t count = std::min(violations.size(), kMostViolations);
  for (std::size_t i = 0; i < count; ++i) text += "\n  " + violations[i];
  if (count < violations.size()) {
    text += "\n  and " + std::to_string(violations.size() - count) + " more";
  }
  return text;
}

void play_alone(const Playing& playing, DrawnStory& story) {
  std::ostream& out = *playing.alone;
  const std::string name = test_name() + ", seed " + std::to_string(playing.first);
  if (playing.shrink && !story.play({}).empty()) {
    out << "the least story, after " << story.shrink() << " plays\n";
  }
  Recording recording{.lines = &out};
  if (may_write(playing.trace_path)) recording.trace_path = playing.trace_path;
  const std::vector<std::string> violations = story.play(recording);
  out << name << (violations.empty() ? " plays well: " : " fails: ") << text_of(story, violations)
      << '\n';
  if (!recording.trace_path.empty()) out << recording.trace_path << " is a trace of it\n";
  if (!violations.empty()) ADD_FAILURE() << name << ": " << text_of(story, violations);
}

void report(const Playing& playing, std::uint64_t seed, DrawnStory& story,
            const std::vector<std::string>& violations) {
  std::ostringstream text;
  text << "replay with NATAGG_SIM_SEED=" << seed << " and --gtest_filter=" << test_name() << "\n  "
       << text_of(story, violations);
  const int plays = story.shrink();
  Recording recording;
  if (may_write(playing.trace_path)) recording.trace_path = playing.trace_path;
  text << "\nthe least story that still fails, after " << plays
       << " plays; replay with NATAGG_SIM_SHRINK=1 as well\n  "
       << text_of(story, story.play(recording));
  if (!recording.trace_path.empty()) text << '\n' << recording.trace_path << " is a trace of it";
  ADD_FAILURE() << text.str();
}

}  // namespace

Playing playing_from_environment(std::uint64_t one_in) {
  Playing playing;
  playing.trace_path = environment("NATAGG_SIM_TRACE");
  if (const auto seed = number("NATAGG_SIM_SEED")) {
    playing.first = *seed;
    playing.alone = &std::cout;
    playing.shrink = number("NATAGG_SIM_SHRINK").value_or(0) != 0;
    return playing;
  }
  const std::uint64_t seeds =
      std::max<std::uint64_t>(1, number("NATAGG_SIM_SEEDS").value_or(kDefaultSeeds) / one_in);
  std::uint64_t part = 0;
  char slash = '/';
  std::istringstream(environment("NATAGG_SIM_PART")) >> part >> slash >> playing.step;
  playing.step = std::max<std::uint64_t>(1, playing.step);
  playing.first = number("NATAGG_SIM_FIRST").value_or(0) + part;
  playing.count = part < seeds ? (seeds - part - 1) / playing.step + 1 : 0;
  return playing;
}

void play_seeds(const Playing& playing,
                const std::function<std::unique_ptr<DrawnStory>(std::uint64_t)>& draw) {
  if (playing.alone != nullptr) return play_alone(playing, *draw(playing.first));
  int failures = 0;
  for (std::uint64_t i = 0; i < playing.count && failures < kMostReports; ++i) {
    const std::uint64_t seed = playing.first + i * playing.step;
    const std::unique_ptr<DrawnStory> story = draw(seed);
    const std::vector<std::string> violations = story->play({});
    if (violations.empty()) continue;
    ++failures;
    report(playing, seed, *story, violations);
  }
}

}  // namespace natagg::simulation
