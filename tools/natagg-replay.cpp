// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-replay: plays a recorded or generated trace into an aggregator and checks its answers.
// Exit status: 0 all answers came and are right, 1 some did not or are not, or the trace cannot be
// replayed, 2 wrong usage.
#include <boost/program_options.hpp>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tools/trace/shard_replay.hpp"
#include "tools/trace/udp_replay.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/transport/address.hpp"

namespace natagg::tools {
namespace {

namespace po = boost::program_options;

constexpr int kRight = 0;
constexpr int kWrong = 1;
constexpr int kUsage = 2;

struct ReplayOptions {
  std::vector<std::string> traces;
  std::string to;
  UdpTarget target;
  Pace pace;
  std::uint64_t loops = 1;
  bool json = false;
};

std::optional<ReplayOptions> parse(int argc, const char* const* argv) {
  ReplayOptions options;
  options.target.first_job = 0x7E57'0000;
  bool shard = false;
  po::options_description visible(
      "natagg-replay TRACE...: plays a trace, of one file or several, into an aggregator and "
      "checks "
      "its answers bit by bit");
  visible.add_options()                //
      ("help", "print this and exit")  //
      ("eal", po::value(&options.target.network.eal)->value_name("arguments"),
       "with --transport ethdev: of DPDK; --no-huge -m 256 unless given")  //
      ("first-job", po::value(&options.target.first_job)->default_value(options.target.first_job),
       "with --to: number of the live job that stands for the first session; the others follow")  //
      ("in-flight", po::value(&options.target.in_flight)->default_value(options.target.in_flight),
       "with --to: chunks sent and not answered, at most")               //
      ("json", po::bool_switch(&options.json), "print one JSON object")  //
      ("local", po::value(&options.target.network.local)->value_name("address|interface"),
       "with --to: to send from")                                                                //
      ("loop", po::value(&options.loops)->default_value(options.loops), "times to play it")      //
      ("rate", po::value(&options.pace.rate)->default_value(0, "flat out"), "packets a second")  //
      ("recorded-speed", po::bool_switch(&options.pace.recorded), "as it was recorded")          //
      ("shard", po::bool_switch(&shard), "into shards of this process, which is the default")    //
      ("to", po::value(&options.to)->value_name("host[:port]"),
       "into a running aggregator")  //
      ("transport",
       po::value(&options.target.network.transport)
           ->value_name("udp|memif:path[,id=n]|ethdev:device"),
       "with --to: as workers have it");
  po::options_description all(visible);
  all.add_options()("trace", po::value(&options.traces));
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv)
                .options(all)
                .positional(po::positional_options_description().add("trace", -1))
                .run(),
            given);
  if (given.count("help") != 0) {
    std::cout << visible << '\n';
    return std::nullopt;
  }
  po::notify(given);
  if (options.traces.empty()) throw po::error("give a trace");
  if (shard && !options.to.empty()) throw po::error("give --shard or --to");
  const NetworkOptions& network = options.target.network;
  if (options.to.empty() && !(network.transport + network.local + network.eal).empty()) {
    throw po::error("--transport, --local and --eal need --to");
  }
  if (options.pace.recorded && options.pace.rate > 0) {
    throw po::error("give --recorded-speed or --rate");
  }
  if (options.pace.rate < 0) throw po::error("--rate is above 0");
  if (options.loops == 0) throw po::error("--loop is at least 1");
  if (options.target.in_flight == 0) throw po::error("--in-flight is at least 1");
  if (!options.to.empty()) {
    const auto endpoints = worker::parse_aggregators(options.to);
    if (endpoints.size() != 1) throw po::error("--to is one aggregator");
    options.target.aggregator = endpoints.front();
  }
  return options;
}

int run(const ReplayOptions& options) {
  const TraceSurvey survey(options.traces);
  const ReplayReport report =
      options.to.empty() ? replay_into_shards(survey, options.pace, options.loops)
                         : replay_over_udp(survey, options.target, options.pace, options.loops);
  std::cout << (options.json ? to_json(survey, report) + '\n' : to_text(survey, report));
  std::cout.flush();
  return report.good(survey) ? kRight : kWrong;
}

}  // namespace
}  // namespace natagg::tools

int main(int argc, char** argv) {
  using namespace natagg::tools;
  std::optional<ReplayOptions> options;
  try {
    options = parse(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "natagg-replay: " << error.what() << "; --help lists the options\n";
    return kUsage;
  }
  if (!options) return kRight;
  try {
    return run(*options);
  } catch (const std::exception& error) {
    std::cerr << "natagg-replay: " << error.what() << '\n';
    return kWrong;
  }
}
