// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The daemon's configuration from a command line, an environment and a file of any text: what it
// takes is within every range and survives being printed and read again; what it does not take is
// refused in words.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "aggregator/configuration.hpp"
#include "input.hpp"

namespace natagg::fuzz {
namespace {

using aggregator::Configuration;
using aggregator::Option;
using aggregator::Options;

/// A file that needs no disk.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("natagg-fuzz", MFD_CLOEXEC)) {
    require(file_ >= 0, "memfd_create() makes a file");
    path_ = "/proc/self/fd/" + std::to_string(file_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(file_); }

  const std::string& hold(const std::string& text) const {
    require(::ftruncate(file_, 0) == 0, "ftruncate() empties the file");
    require(::pwrite(file_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
            "pwrite() fills the file");
    return path_;
  }

 private:
  int file_;
  std::string path_;
};

std::string raw_text(Input& input) {
  std::string text;
  for (const std::uint8_t byte : input.bytes(input.below(24))) text += static_cast<char>(byte);
  return text;
}

std::string value_for(const Option& option, Input& input) {
  const std::size_t kind = input.below(8);
  if (kind == 0) return raw_text(input);
  if (kind == 1) return std::to_string(input.take(8) >> (input.below(64)));
  if (!option.choices.empty()) {
    const std::size_t bar = option.choices.find('|');
    return std::string(kind % 2 == 0 ? option.choices.substr(0, bar)
                                     : option.choices.substr(bar + 1));
  }
  if (option.max > 0) {
    const double place = static_cast<double>(input.byte()) / 255;
    const double value = option.min + place * (option.max - option.min);
    return kind == 2 ? std::to_string(value)
                     : std::to_string(static_cast<std::uint64_t>(value) & (kind < 5 ? ~127U : ~0U));
  }
  return option.example.empty() ? "text" : std::string(option.example);
}

struct Sources {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string file;
};

/// Most keys are known, and the address is there, without which nothing is taken.
Sources compose(Input& input) {
  Sources sources;
  const auto table = aggregator::option_table();
  if (input.below(8) != 0) sources.file = "address = 10.0.0.1\n";
  while (!input.empty()) {
    const std::size_t where = input.byte();
    const Option& option = table[input.below(table.size())];
    const std::string value = value_for(option, input);
    std::string key(option.name);
    if (where >= 0xF0) key = raw_text(input);
    if (where % 3 == 0) sources.arguments.push_back("--" + key + "=" + value);
    if (where % 3 == 1) {
      sources.environment.push_back(aggregator::environment_name(key) + "=" + value);
    }
    if (where % 3 == 2) sources.file += key + " = " + value + "\n";
    if (where == 0xEF) sources.arguments.push_back(raw_text(input));
    if (where == 0xEE) sources.file += raw_text(input);
  }
  return sources;
}

/// Texts that a configuration file cannot hold: its comments, and blanks at an end.
bool can_be_written(const Options& options) {
  return std::ranges::all_of(aggregator::option_table(), [&](const Option& option) {
    const std::string text = aggregator::value_text(options, option);
    const bool odd = text.find_first_of("#\n\r") != text.npos ||
                     (!text.empty() && (std::isspace(static_cast<unsigned char>(text.front())) ||
                                        std::isspace(static_cast<unsigned char>(text.back()))));
    return !odd && text.find('\0') == text.npos;
  });
}

void check_accepted(const Configuration& configuration, const MemoryFile& file) {
  const Options& options = configuration.options;
  for (const Option& option : aggregator::option_table()) {
    if (option.max == 0) continue;
    const double value = std::stod(aggregator::value_text(options, option));
    require(value >= option.min && value <= option.max, "a number is within its range");
  }
  if (configuration.request != aggregator::Request::kRun || !can_be_written(options)) return;
  aggregator::validate(options);
  const std::string& path = file.hold(aggregator::render_configuration(options));
  const Configuration again = aggregator::load_configuration({"--config", path}, {});
  require(again.options == options, "what is printed says the same when it is read");
}

void check_words(const std::string& text) {
  std::size_t letters = 0;
  for (const std::string& word : aggregator::split_words(text)) letters += word.size();
  require(letters <= text.size(), "words are made of their text");
}

}  // namespace
}  // namespace natagg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace natagg;
  static const fuzz::MemoryFile file;
  fuzz::Input input({data, size});
  fuzz::Sources sources = fuzz::compose(input);
  sources.arguments.insert(sources.arguments.begin(), {"--config", file.hold(sources.file)});
  fuzz::check_words(sources.file);
  try {
    fuzz::check_accepted(aggregator::load_configuration(sources.arguments, sources.environment),
                         file);
  } catch (const std::invalid_argument& error) {
    fuzz::require(*error.what() != '\0', "a refusal has words");
  }
  return 0;
}
