// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the daemon can be told. One table names every key once; the command line, the environment,
// the configuration file, range checks, --help, the printed configuration and the shipped sample
// all follow from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace natagg::aggregator {

struct Options {
  std::string address;
  std::uint32_t port = 4790;
  std::uint32_t mtu = 0;
  std::string multicast = "auto";
  std::string multicast_group = "239.78.65.0";
  std::uint32_t multicast_port = 0;

  std::uint32_t max_jobs = 16;
  std::uint32_t max_workers = 1024;
  std::uint32_t max_window = 256;
  std::uint32_t max_values = 8832;
  std::uint32_t member_timeout_ms = 1500;
  std::uint32_t forming_timeout_ms = 1000;
  std::uint32_t probe_wait_ms = 100;

  std::string key_directory;
  std::string jobs_without_key = "refuse";

  std::string eal_args;
  std::string idle = "poll";
  std::string kernels = "auto";

  std::string log_file;
  std::string log_level = "info";
  std::string ready_file;
  std::uint32_t stats_period_s = 0;

  double inject_loss_rx = 0;
  double inject_loss_tx = 0;
  std::uint32_t inject_seed = 1;

  bool operator==(const Options&) const = default;
};

/// One key. Its default is the member's initial value above.
struct Option {
  using Field = std::variant<std::uint32_t Options::*, double Options::*, std::string Options::*>;

  std::string_view name;
  std::string_view group;
  Field field;
  double min = 0;  // numbers
  double max = 0;
  std::string_view unit{};     // numbers
  std::string_view choices{};  // texts: "a|b|c", or empty for free text
  std::string_view help{};
  std::string_view example{};      // of a free text
  std::string_view requirement{};  // beyond the range, and its check
  bool (*check)(const Options&) = nullptr;
};

[[nodiscard]] std::span<const Option> option_table();
[[nodiscard]] const Option* find_option(std::string_view name);

/// Sets one key from text. Throws std::invalid_argument that names key, value and range.
void set_option(Options& options, const Option& option, const std::string& text);

/// Checks each key's own condition and those between keys. Throws std::invalid_argument.
void validate(const Options& options);

[[nodiscard]] std::string value_text(const Options& options, const Option& option);

/// "10 to 600000 ms", "auto|off", "1 to 32768 slots, a power of two", "text".
[[nodiscard]] std::string range_text(const Option& option);

/// A commented configuration file: every key with its meaning, range and default; keys that
/// differ from the default are set. Of default options it is the shipped sample.
[[nodiscard]] std::string render_configuration(const Options& options);

}  // namespace natagg::aggregator
