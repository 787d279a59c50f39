// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/options.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <stdexcept>

#include "aggregator/ipv4_text.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {
namespace {

constexpr double kHour_ms = 3'600'000;

bool check_address(const Options& options) {
  return parse_ipv4(options.address).has_value();
}

bool check_group(const Options& options) {
  const auto group = parse_ipv4(options.multicast_group);
  return group && *group >> 28 == 0xE && (*group + 255) >> 28 == 0xE;
}

bool check_mtu(const Options& options) {
  return options.mtu == 0 || proto::values_for_mtu(options.mtu) != 0;
}

bool check_window(const Options& options) {
  return std::has_single_bit(options.max_window);
}

bool check_values(const Options& options) {
  return options.max_values % proto::kValuesMultiple == 0;
}

// In each group in alphabetical order, but for the address, which every user must set.
constexpr std::array kTable = {
    Option{.name = "address",
           .group = "Network",
           .field = &Options::address,
           .help = "The aggregator's own IPv4 address, required. It must not be the kernel's.\n"
                   "A prefix length is accepted and ignored: answers go where questions came from.",
           .example = "10.0.0.1/24",
           .requirement = "an IPv4 address, as 10.0.0.1 or 10.0.0.1/24",
           .check = check_address},
    Option{.name = "mtu",
           .group = "Network",
           .field = &Options::mtu,
           .min = 0,
           .max = 9600,
           .unit = "bytes",
           .help = "MTU of the device; 0: what it has. 9000 carries 8832 values a packet, 1500\n"
                   "carries 1408.",
           .requirement = "but not 1 to 219",
           .check = check_mtu},
    Option{.name = "multicast",
           .group = "Network",
           .field = &Options::multicast,
           .choices = "auto|off",
           .help =
               "auto: results go out once, by multicast, to the workers that heard the probe at\n"
               "join, and to each of the others. off: always one frame a worker."},
    Option{.name = "multicast_group",
           .group = "Network",
           .field = &Options::multicast_group,
           .help = "First of 256 IPv4 groups; job j uses the one at j modulo 256.",
           .example = "239.78.65.0",
           .requirement = "an IPv4 multicast address with 255 more behind it",
           .check = check_group},
    Option{.name = "multicast_port",
           .group = "Network",
           .field = &Options::multicast_port,
           .min = 0,
           .max = 65535,
           .help = "UDP port of the groups; 0: the same as port."},
    Option{.name = "port",
           .group = "Network",
           .field = &Options::port,
           .min = 1,
           .max = 65535,
           .help = "UDP port of the first shard; shard i (the i-th lcore) has port + i."},

    Option{.name = "forming_timeout_ms",
           .group = "Protocol",
           .field = &Options::forming_timeout_ms,
           .min = 10,
           .max = kHour_ms,
           .unit = "ms",
           .help = "Silence after which a rank loses its place in a job that is still forming."},
    Option{.name = "max_jobs",
           .group = "Protocol",
           .field = &Options::max_jobs,
           .min = 1,
           .max = 4096,
           .unit = "jobs",
           .help = "Jobs at a time."},
    Option{.name = "max_values",
           .group = "Protocol",
           .field = &Options::max_values,
           .min = proto::kMinValues,
           .max = proto::kMaxValues,
           .unit = "values",
           .help = "Most values a packet; the MTU bounds it too.",
           .requirement = "a multiple of 128",
           .check = check_values},
    Option{.name = "max_window",
           .group = "Protocol",
           .field = &Options::max_window,
           .min = 1,
           .max = 32768,
           .unit = "slots",
           .help = "Most slots of a job on one shard.",
           .requirement = "a power of two",
           .check = check_window},
    Option{.name = "max_workers",
           .group = "Protocol",
           .field = &Options::max_workers,
           .min = 1,
           .max = 65535,
           .unit = "workers",
           .help = "Most workers of a job."},
    Option{
        .name = "member_timeout_ms",
        .group = "Protocol",
        .field = &Options::member_timeout_ms,
        .min = 10,
        .max = kHour_ms,
        .unit = "ms",
        .help = "Silence after which a worker counts as dead, and operations that need it fail."},
    Option{.name = "probe_wait_ms",
           .group = "Protocol",
           .field = &Options::probe_wait_ms,
           .min = 0,
           .max = 60000,
           .unit = "ms",
           .help = "How long a complete job waits for its workers to hear the multicast probe."},

    Option{.name = "jobs_without_key",
           .group = "Security",
           .field = &Options::jobs_without_key,
           .choices = "refuse|accept",
           .help =
               "What becomes of jobs that have no key where key_directory is set. Without it no\n"
               "job has a key, and all are accepted."},
    Option{.name = "key_directory",
           .group = "Security",
           .field = &Options::key_directory,
           .help = "Directory with the keys of jobs, that of job 7 in a file 7.key of mode 600;\n"
                   "read at start. Only workers with the same key get into such a job, and every\n"
                   "packet of it is authenticated. Empty: none is.",
           .example = "/etc/natagg/keys"},

    Option{.name = "eal_args",
           .group = "Machine",
           .field = &Options::eal_args,
           .help = "Arguments for DPDK's EAL, as before the -- of the command line, which adds to\n"
                   "them. The number of lcores (-l) is the number of shards.",
           .example = "-l 0-1 -a 0000:81:00.0"},
    Option{.name = "idle",
           .group = "Machine",
           .field = &Options::idle,
           .choices = "poll|polite",
           .help = "poll: lcores spin. polite: an lcore without traffic naps for up to 200 us, so\n"
                   "that it can share its CPU; a packet that finds it asleep waits as long."},
    Option{.name = "kernels",
           .group = "Machine",
           .field = &Options::kernels,
           .choices = "auto|scalar|avx2|avx512",
           .help = "Vector code to use; auto: the best that the CPU has. DPDK's\n"
                   "--force-max-simd-bitwidth does not apply to it."},

    Option{.name = "log_file",
           .group = "Operation",
           .field = &Options::log_file,
           .help = "File to append the log to; empty: standard error.",
           .example = "/var/log/natagg-aggregator.log"},
    Option{.name = "log_level",
           .group = "Operation",
           .field = &Options::log_level,
           .choices = "trace|debug|info|warning|error",
           .help = "Least severe messages to log."},
    Option{.name = "ready_file",
           .group = "Operation",
           .field = &Options::ready_file,
           .help = "File that gets the ready line once packets are served and goes away at stop.",
           .example = "/run/natagg-aggregator.ready"},
    Option{.name = "stats_period_s",
           .group = "Operation",
           .field = &Options::stats_period_s,
           .min = 0,
           .max = 86400,
           .unit = "s",
           .help = "Time between logs of all counters; 0: only at SIGUSR1 and at stop."},

    Option{.name = "inject_loss_rx",
           .group = "Tests",
           .field = &Options::inject_loss_rx,
           .min = 0,
           .max = 1,
           .help = "Part of the datagrams received to drop, chosen at random from inject_seed."},
    Option{.name = "inject_loss_tx",
           .group = "Tests",
           .field = &Options::inject_loss_tx,
           .min = 0,
           .max = 1,
           .help = "Part of the datagrams to send to drop, likewise."},
    Option{.name = "inject_seed",
           .group = "Tests",
           .field = &Options::inject_seed,
           .min = 0,
           .max = 4294967295.0,
           .help = "Seed of injected losses; each lcore draws its own series."},
};

std::invalid_argument bad_value(const Option& option, std::string_view text) {
  return std::invalid_argument(fmt::format("{} = {}: must be {}", option.name,
                                           text.empty() ? "(empty)" : text, range_text(option)));
}

template <typename Number>
Number parse_number(const Option& option, const std::string& text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  const auto number = static_cast<double>(value);
  // The comparison is false for NaN, which from_chars reads.
  const bool inside = number >= option.min && number <= option.max;
  if (error != std::errc{} || stop != end || !inside) {
    throw bad_value(option, text);
  }
  return value;
}

bool is_choice(std::string_view choices, std::string_view text) {
  const std::string fenced = fmt::format("|{}|", choices);
  return !text.empty() && text.find('|') == text.npos &&
         fenced.find(fmt::format("|{}|", text)) != fenced.npos;
}

}  // namespace

std::span<const Option> option_table() {
  return kTable;
}

const Option* find_option(std::string_view name) {
  for (const Option& option : kTable) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

void set_option(Options& options, const Option& option, const std::string& text) {
  if (const auto* integer = std::get_if<std::uint32_t Options::*>(&option.field)) {
    options.*(*integer) = parse_number<std::uint32_t>(option, text);
  } else if (const auto* real = std::get_if<double Options::*>(&option.field)) {
    options.*(*real) = parse_number<double>(option, text);
  } else {
    if (!option.choices.empty() && !is_choice(option.choices, text)) {
      throw bad_value(option, text);
    }
    options.*std::get<std::string Options::*>(option.field) = text;
  }
}

void validate(const Options& options) {
  for (const Option& option : kTable) {
    if (option.check == nullptr || option.check(options)) continue;
    throw bad_value(option, value_text(options, option));
  }
}

std::string value_text(const Options& options, const Option& option) {
  return std::visit([&](auto member) { return fmt::format("{}", options.*member); }, option.field);
}

std::string range_text(const Option& option) {
  if (std::holds_alternative<std::string Options::*>(option.field)) {
    if (!option.choices.empty()) return std::string{option.choices};
    return option.requirement.empty() ? "text" : std::string{option.requirement};
  }
  const bool real = std::holds_alternative<double Options::*>(option.field);
  std::string range = real ? fmt::format("{} to {}", option.min, option.max)
                           : fmt::format("{:.0f} to {:.0f}", option.min, option.max);
  if (!option.unit.empty()) range += fmt::format(" {}", option.unit);
  if (!option.requirement.empty()) range += fmt::format(", {}", option.requirement);
  return range;
}

std::string render_configuration(const Options& options) {
  const Options defaults;
  std::string text =
      "# Configuration of natagg-aggregator: the defaults, each key with its meaning and range.\n"
      "# Use with --config FILE. Command line (--key=value) goes before environment (NATAGG_KEY),\n"
      "# environment before this file. SIGHUP does not read it again.\n";
  std::string_view group;
  for (const Option& option : kTable) {
    if (option.group != group) text += fmt::format("\n# --- {} ---\n", option.group);
    group = option.group;
    std::string help = fmt::format("\n{}", option.help);
    for (std::size_t at = 0; (at = help.find('\n', at)) != help.npos; at += 3) {
      help.replace(at, 1, "\n# ");
    }
    const std::string value = value_text(options, option);
    const std::string initial = value_text(defaults, option);
    text += fmt::format("{}\n# Range: {}. Default: {}.\n", help, range_text(option),
                        initial.empty() ? "empty" : initial);
    if (value != initial) {
      text += fmt::format("{} = {}\n", option.name, value);
    } else {
      text +=
          fmt::format("#{} = {}\n", option.name, option.example.empty() ? initial : option.example);
    }
  }
  return text;
}

}  // namespace natagg::aggregator
