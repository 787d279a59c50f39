// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace natagg::aggregator {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kCommandLine = "command line";
constexpr std::string_view kEnvironment = "environment";

po::options_description key_options() {
  po::options_description keys("Keys (KEY of the command line, NATAGG_KEY, configuration file)");
  for (const Option& option : option_table()) {
    const std::string initial = value_text(Options{}, option);
    const std::string help = fmt::format("{}\nRange: {}. Default: {}.", option.help,
                                         range_text(option), initial.empty() ? "empty" : initial);
    keys.add_options()(std::string{option.name}.c_str(), po::value<std::string>(), help.c_str());
  }
  return keys;
}

po::options_description request_options() {
  po::options_description requests("Options");
  requests.add_options()("help,h", "print this text");
  requests.add_options()("version", "print the version");
  requests.add_options()("config", po::value<std::string>(),
                         "configuration file (environment: NATAGG_CONFIG)");
  requests.add_options()("check-config", "check the configuration and stop");
  requests.add_options()("print-config", "print the effective configuration and stop");
  return requests;
}

/// Keys are written with underscores; the command line takes dashes for them too.
std::string with_underscores(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  std::string name = argument.substr(2, argument.find('=') - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  if (find_option(name) != nullptr) argument.replace(2, name.size(), name);
  return argument;
}

po::parsed_options parse_command_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> spelled;
  std::transform(arguments.begin(), arguments.end(), std::back_inserter(spelled), with_underscores);
  po::options_description all;
  all.add(request_options()).add(key_options());
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  // No positional arguments are described, so that any is refused.
  po::positional_options_description none;
  return po::command_line_parser(spelled).options(all).positional(none).style(style).run();
}

po::parsed_options parse_environment(const po::options_description& keys,
                                     const std::vector<std::string>& environment) {
  po::parsed_options parsed(&keys);
  for (const Option& option : option_table()) {
    const std::string prefix = environment_name(option.name) + "=";
    for (const std::string& variable : environment) {
      if (!variable.starts_with(prefix)) continue;
      parsed.options.emplace_back(std::string{option.name},
                                  std::vector{variable.substr(prefix.size())});
    }
  }
  return parsed;
}

void apply(const po::parsed_options& parsed, std::string_view source,
           Configuration& configuration) {
  std::vector<std::string> seen;
  for (const po::option& given : parsed.options) {
    const Option* option = find_option(given.string_key);
    if (option == nullptr || given.value.empty()) continue;
    if (std::find(seen.begin(), seen.end(), given.string_key) != seen.end()) {
      throw std::invalid_argument(fmt::format("{} is given twice", given.string_key));
    }
    seen.push_back(given.string_key);
    set_option(configuration.options, *option, given.value.front());
    configuration.sources[given.string_key] = source;
  }
}

const po::option* find_given(const po::parsed_options& parsed, std::string_view name) {
  for (const po::option& given : parsed.options) {
    if (given.string_key == name) return &given;
  }
  return nullptr;
}

Request find_request(const po::parsed_options& parsed) {
  if (find_given(parsed, "help") != nullptr) return Request::kHelp;
  if (find_given(parsed, "version") != nullptr) return Request::kVersion;
  if (find_given(parsed, "check-config") != nullptr) return Request::kCheckConfig;
  if (find_given(parsed, "print-config") != nullptr) return Request::kPrintConfig;
  return Request::kRun;
}

std::string find_file(const po::parsed_options& command_line,
                      const std::vector<std::string>& environment) {
  const po::option* given = find_given(command_line, "config");
  if (given != nullptr) return given->value.front();
  const std::string prefix = environment_name("config") + "=";
  for (const std::string& variable : environment) {
    if (variable.starts_with(prefix)) return variable.substr(prefix.size());
  }
  return {};
}

/// Runs one source's `read`, so that its errors name it.
template <typename Read>
void from_source(std::string_view source, Read read) {
  try {
    read();
  } catch (const po::unknown_option& error) {
    const std::string given = error.get_option_name();
    throw std::invalid_argument(
        fmt::format("{}: unknown key {}", source, given.substr(0, given.find('='))));
  } catch (const std::exception& error) {
    throw std::invalid_argument(fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace

CommandLine split_command_line(const std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes == arguments.end()) return {.eal = {}, .ours = arguments};
  return {.eal = {arguments.begin(), dashes}, .ours = {dashes + 1, arguments.end()}};
}

Configuration load_configuration(const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& environment) {
  Configuration configuration;
  const po::options_description keys = key_options();
  po::parsed_options command_line(&keys);
  from_source(kCommandLine, [&] { command_line = parse_command_line(arguments); });
  configuration.request = find_request(command_line);
  if (configuration.request == Request::kHelp || configuration.request == Request::kVersion) {
    return configuration;
  }

  const std::string file = find_file(command_line, environment);
  if (!file.empty()) {
    from_source(file, [&] {
      std::ifstream stream(file);
      if (!stream) throw std::invalid_argument("cannot be read");
      apply(po::parse_config_file(stream, keys), file, configuration);
    });
  }
  from_source(kEnvironment,
              [&] { apply(parse_environment(keys, environment), kEnvironment, configuration); });
  from_source(kCommandLine, [&] { apply(command_line, kCommandLine, configuration); });
  if (configuration.request != Request::kPrintConfig) validate(configuration.options);
  return configuration;
}

std::string help_text() {
  std::ostringstream text;
  text << "natagg-aggregator: sums the gradients that workers send, on DPDK.\n\n"
          "  natagg-aggregator [OPTIONS]                     EAL arguments from eal_args\n"
          "  natagg-aggregator [EAL ARGUMENTS] -- [OPTIONS]  these, after those of eal_args\n\n"
       << request_options() << "\n"
       << key_options();
  return text.str();
}

std::string environment_name(std::string_view key) {
  std::string name = "NATAGG_";
  for (char c : key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  for (char c : text) {
    if (quote != 0 ? c == quote : (c == '"' || c == '\'')) {
      quote = quote != 0 ? '\0' : c;
      if (!inside) words.emplace_back();
      inside = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back() += c;
    }
  }
  return words;
}

}  // namespace natagg::aggregator
