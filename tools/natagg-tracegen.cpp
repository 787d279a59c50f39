// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-tracegen: makes the trace of n ranks that reduce given or generated tensors, for
// natagg-replay. Exit status: 0 done, 1 it failed, 2 wrong usage.
#include <boost/program_options.hpp>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include "tools/tensor_data.hpp"
#include "tools/trace/trace_generator.hpp"

namespace natagg::tools {
namespace {

namespace po = boost::program_options;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct TracegenOptions {
  TraceJobOptions trace;
  std::vector<std::string> inputs;
  std::string output;
  std::string type = "float32";
  std::string rounding = "stochastic";
  std::uint16_t world = 2;
  std::size_t count = 100'000;
  std::uint64_t data_seed = 1;
};

template <typename T>
auto* with_default(T& target) {
  return po::value<T>(&target)->default_value(target);
}

std::optional<TracegenOptions> parse(int argc, const char* const* argv) {
  TracegenOptions options;
  TraceJobOptions& trace = options.trace;
  VirtualNetworkOptions& network = trace.network;
  bool average = false;
  po::options_description all("natagg-tracegen: makes a trace for natagg-replay");
  all.add_options()                                                                     //
      ("average", po::bool_switch(&average), "divide the sum by the number of ranks")   //
      ("count", with_default(options.count), "values to generate for each rank")        //
      ("data-seed", with_default(options.data_seed), "of generated values")             //
      ("duplication", with_default(network.duplication), "probability, each datagram")  //
      ("gigabits", with_default(network.gigabits), "a second, of each host's link")     //
      ("help", "print this and exit")                                                   //
      ("input", po::value(&options.inputs)->multitoken()->value_name("file..."),
       "little-endian values without a header, one file a rank, rank 0's first")           //
      ("jobs", with_default(trace.jobs), "that do this at the same time")                  //
      ("loss", with_default(network.loss), "probability, each datagram")                   //
      ("mtu", with_default(trace.mtu), "of the path")                                      //
      ("network-seed", with_default(network.seed), "of losses, copies and reordering")     //
      ("output", po::value(&options.output)->required()->value_name("file"), "the trace")  //
      ("reordering", with_default(network.reordering), "probability of being overtaken")   //
      ("repeat", with_default(trace.operations), "operations in all")                      //
      ("rounding", with_default(options.rounding), "stochastic or nearest")                //
      ("seed", with_default(trace.seed), "of the jobs' randomness")                        //
      ("shards", with_default(trace.shards), "of the aggregator")                          //
      ("shift", with_default(trace.shift), "moves the window of exponents, -64 to 64")     //
      ("type", with_default(options.type), "float32, float64, float16 or bfloat16")        //
      ("values", with_default(trace.values),
       "a packet, a multiple of 128; 0: the most that the path carries")                    //
      ("window", with_default(trace.window), "chunks under way per shard, a power of two")  //
      ("world", with_default(options.world), "number of ranks");
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(all).positional({}).run(), given);
  if (given.count("help") != 0) {
    std::cout << all << '\n';
    return std::nullopt;
  }
  po::notify(given);
  if (options.rounding != "stochastic" && options.rounding != "nearest") {
    throw po::error("--rounding is stochastic or nearest");
  }
  if (options.rounding == "nearest") trace.rounding = proto::Rounding::kNearest;
  if (average) trace.reduction = proto::Reduction::kAverage;
  if (!type_named(options.type)) {
    throw po::error("--type is float32, float64, float16 or bfloat16");
  }
  if (!options.inputs.empty()) options.world = static_cast<std::uint16_t>(options.inputs.size());
  if (options.world == 0 || trace.operations == 0 || trace.jobs == 0) {
    throw po::error("--world, --repeat and --jobs are at least 1");
  }
  return options;
}

std::vector<Tensor> load(const TracegenOptions& options) {
  const DataType type = *type_named(options.type);
  std::vector<Tensor> tensors;
  for (const std::string& path : options.inputs) tensors.push_back(read_tensor(path, type));
  for (std::uint32_t rank = 0; options.inputs.empty() && rank < options.world; ++rank) {
    tensors.push_back(generate_tensor(type, options.data_seed, rank, options.count));
  }
  return tensors;
}

void run(TracegenOptions& options) {
  options.trace.inputs = load(options);
  const GeneratedTrace trace = generate_trace(options.trace, options.output);
  std::cout << options.output << ": " << trace.packets << " packets in " << trace.seconds << " s, "
            << trace.retransmissions << " retransmissions\n";
}

}  // namespace
}  // namespace natagg::tools

int main(int argc, char** argv) {
  using namespace natagg::tools;
  std::optional<TracegenOptions> options;
  try {
    options = parse(argc, argv);
  } catch (const boost::program_options::error& error) {
    std::cerr << "natagg-tracegen: " << error.what() << "; --help lists the options\n";
    return kUsage;
  }
  if (!options) return kDone;
  try {
    run(*options);
    return kDone;
  } catch (const std::exception& error) {
    std::cerr << "natagg-tracegen: " << error.what() << '\n';
    return kFailed;
  }
}
