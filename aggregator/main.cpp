// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The aggregator daemon: configuration, log, EAL, ports, lcores, and an orderly end.
#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/configuration.hpp"
#include "aggregator/control.hpp"
#include "aggregator/io/capture.hpp"
#include "aggregator/io/datapath.hpp"
#include "aggregator/io/eal.hpp"
#include "aggregator/io/ports.hpp"
#include "aggregator/io/telemetry.hpp"
#include "aggregator/log.hpp"
#include "aggregator/ready_file.hpp"
#include "aggregator/report.hpp"
#include "keys/key_file.hpp"

namespace natagg::aggregator {
namespace {

constexpr int kFailure = 1;
constexpr int kBadConfiguration = 2;

/// Larger blocks are the kernel's again once they are freed.
constexpr int kLargeBlock = 256 * 1024;

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

/// Whether `configuration` asks for something to print instead of a run.
bool answer_request(const Configuration& configuration) {
  switch (configuration.request) {
    case Request::kHelp: print(help_text()); return true;
    case Request::kVersion: print("natagg-aggregator " NATAGG_VERSION "\n"); return true;
    case Request::kCheckConfig: print("configuration: good\n"); return true;
    case Request::kPrintConfig: print(render_configuration(configuration.options)); return true;
    case Request::kRun: break;
  }
  return false;
}

void log_configuration(const Configuration& configuration) {
  for (const Option& option : option_table()) {
    const auto source = configuration.sources.find(option.name);
    spdlog::info("config: {} = {} ({})", option.name, value_text(configuration.options, option),
                 source == configuration.sources.end() ? "default" : source->second);
  }
}

void log_counters(const io::Datapath& datapath) {
  spdlog::info("counters:");
  for (const std::string& line : render_report(datapath.counters())) spdlog::info("  {}", line);
}

/// A link that comes back may lead to another switch port, which must learn where we are.
class LinkWatch {
 public:
  LinkWatch(const io::Ports& ports, io::Datapath& datapath) : ports_(ports), datapath_(datapath) {
    for (const io::Port& port : ports_.all()) up_.push_back(port.link_up());
  }

  void look() {
    for (const io::Port& port : ports_.all()) look(port);
  }

 private:
  void look(const io::Port& port) {
    const bool up = port.link_up();
    if (up == up_[port.number()]) return;
    up_[port.number()] = up;
    spdlog::warn("port {}: link {}", port.name(), up ? "up" : "down");
    if (up) datapath_.announce();
  }

  const io::Ports& ports_;
  io::Datapath& datapath_;
  std::vector<bool> up_;  // by the port's number
};

/// A session's slots are megabytes. By default glibc keeps such blocks once it has seen one, in
/// arenas in which later ones leave holes: memory would grow with the number of jobs served.
void give_slots_back() {
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
}

std::shared_ptr<const proto::JobKeys> read_keys(const Options& options) {
  if (options.key_directory.empty()) return nullptr;
  return std::make_shared<proto::JobKeys>(keys::read_key_directory(options.key_directory));
}

void serve(const SignalMask& mask, const std::string& program, const CommandLine& command_line,
           const Options& options, std::shared_ptr<const proto::JobKeys> keys) {
  const ReadyFile ready_file(options.ready_file);
  std::vector<std::string> eal_arguments = split_words(options.eal_args);
  eal_arguments.insert(eal_arguments.end(), command_line.eal.begin(), command_line.eal.end());

  io::Eal eal(program, eal_arguments, [] { print(help_text()); });
  const io::Capture capture;
  const io::Ports ports(options.mtu, eal.lcores());
  if (ports.gate() != nullptr) eal.keep_memory();  // it works by alarms
  io::Datapath datapath(options, ports, eal.lcores(), std::move(keys));
  const io::Telemetry telemetry(datapath, options);
  LinkWatch link(ports, datapath);
  const ControlThread control(mask,
                              {.stop = [&] { datapath.stop(); },
                               .report = [&] { log_counters(datapath); },
                               .every_second = [&] { link.look(); }},
                              std::chrono::seconds(options.stats_period_s));
  datapath.start();
  ready_file.write(datapath.ready_text());
  spdlog::info("ready: {}", datapath.ready_text());
  datapath.run();
  log_counters(datapath);
}

int run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  const SignalMask mask;
  const CommandLine command_line = split_command_line({arguments.begin() + 1, arguments.end()});
  Configuration configuration;
  std::shared_ptr<const proto::JobKeys> keys;
  try {
    configuration = load_configuration(command_line.ours, environment);
    const bool run = configuration.request == Request::kRun;
    if (run || configuration.request == Request::kCheckConfig) {
      keys = read_keys(configuration.options);
    }
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "natagg-aggregator: %s\n", error.what());
    return kBadConfiguration;
  }
  if (answer_request(configuration)) return 0;

  try {
    start_log(configuration.options.log_level, configuration.options.log_file);
    spdlog::info("natagg-aggregator " NATAGG_VERSION);
    log_configuration(configuration);
    give_slots_back();
    if (keys) spdlog::info("keys: of {} {}", keys->size(), keys->size() == 1 ? "job" : "jobs");
    serve(mask, arguments.front(), command_line, configuration.options, std::move(keys));
  } catch (const std::exception& error) {
    spdlog::critical("{}", error.what());
    return kFailure;
  }
  spdlog::info("stopped");
  return 0;
}

}  // namespace
}  // namespace natagg::aggregator

int main(int argc, char** argv) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return natagg::aggregator::run({argv, argv + argc}, environment);
}
