// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/allreduce_options.hpp"

#include <boost/program_options.hpp>
#include <iostream>

namespace natagg::tools {
namespace {

namespace po = boost::program_options;
using Milliseconds = std::uint32_t;

/// What needs a conversion before it is an option.
struct Raw {
  std::string rounding;
  std::string type;
  Milliseconds connect_timeout = 0;
  Milliseconds operation_timeout = 0;
  Milliseconds heartbeat = 0;
  Milliseconds aggregator_timeout = 0;
  Milliseconds straggler_deadline = 0;
  std::uint32_t busy_poll = 0;  // us
  std::size_t count = 0;
};

template <typename T>
auto* with_default(T& target) {
  return po::value<T>(&target)->default_value(target);
}

auto* with_default(Milliseconds& target, std::chrono::duration<std::uint32_t, std::milli> value) {
  return po::value<Milliseconds>(&target)->default_value(value.count())->value_name("ms");
}

po::options_description job_options(AllreduceOptions& options, Raw& raw) {
  natagg::Options& worker = options.worker;
  po::options_description description("Job (alike on all ranks, but for --rank)");
  description.add_options()  //
      ("aggregators", po::value(&worker.aggregators)->required()->value_name("host[:port],..."),
       "the pool: numeric IPv4, port 4790 unless given")                       //
      ("average", po::bool_switch(), "divide the sum by the number of ranks")  //
      ("job", with_default(worker.job), "number of the job")                   //
      ("key-file", po::value(&worker.key_file)->value_name("file"),
       "with the job's key, which the aggregators must have; its mode is 600")  //
      ("quorum", with_default(worker.quorum),
       "ranks that a partial result has at least; 0: more than half")  //
      ("rank", with_default(worker.rank), "of this process, from 0")   //
      ("rounding", po::value(&raw.rounding)->default_value("stochastic"),
       "stochastic (unbiased) or nearest")                                               //
      ("seed", with_default(worker.seed), "of the job's randomness")                     //
      ("shift", with_default(worker.shift), "moves the window of exponents, -64 to 64")  //
      ("straggler-deadline", with_default(raw.straggler_deadline, worker.straggler_deadline),
       "how long a chunk may wait for ranks that are late; 0: for all of them")  //
      ("type", po::value(&raw.type)->default_value(std::string(type_name(options.type))),
       "of the values: float32, float64, float16 or bfloat16")  //
      ("values", with_default(worker.values_per_packet),
       "a packet, a multiple of 128; 0: the most that the path carries")  //
      ("world", with_default(worker.world), "number of ranks");
  return description;
}

po::options_description data_options(AllreduceOptions& options, Raw& raw) {
  po::options_description description("Data");
  description.add_options()  //
      ("check", po::bool_switch(&options.check),
       "compare every result of all ranks bit by bit with a slow computation from the definition, "
       "from all ranks' generated values")  //
      ("check-inputs", po::value(&options.check_inputs)->multitoken()->value_name("file..."),
       "the same, from all ranks' files, rank 0's first")  //
      ("count", po::value(&raw.count)->value_name("n"),
       "generate n values, or use the first n of --input")                                     //
      ("data-seed", with_default(options.data_seed), "of generated values")                    //
      ("in-flight", with_default(options.in_flight), "operations at once")                     //
      ("in-place", po::bool_switch(&options.in_place), "receive results where the input was")  //
      ("input", po::value(&options.input)->value_name("file"),
       "little-endian values without a header")                                          //
      ("output", po::value(&options.output)->value_name("file"), "for the last result")  //
      ("repeat", with_default(options.repeat), "operations in all");
  return description;
}

po::options_description network_options(natagg::Options& worker, Raw& raw) {
  po::options_description description("Network");
  description.add_options()  //
      ("aggregator-timeout", with_default(raw.aggregator_timeout, worker.aggregator_timeout),
       "silence after which an aggregator is lost")  //
      ("busy-poll",
       po::value(&raw.busy_poll)->default_value(worker.busy_poll.count())->value_name("us"),
       "how long to look for packets before sleeping; takes a core")  //
      ("connect-timeout", with_default(raw.connect_timeout, worker.connect_timeout),
       "for all ranks to join")  //
      ("eal", po::value(&worker.eal)->value_name("arguments"),
       "of DPDK for --transport ethdev; --no-huge -m 256 unless given")  //
      ("heartbeat", with_default(raw.heartbeat, worker.heartbeat),
       "between signs of life of an idle rank")  //
      ("io-threads", with_default(worker.io_threads),
       "that divide the pool's shards among them")                                               //
      ("local", po::value(&worker.local)->value_name("address|interface"), "to send from")       //
      ("loss-seed", with_default(worker.loss_seed), "of injected losses")                        //
      ("no-gso", po::bool_switch(), "send and receive every packet by itself (no GSO, no GRO)")  //
      ("no-multicast", po::bool_switch(), "receive every result by unicast")                     //
      ("operation-timeout", with_default(raw.operation_timeout, worker.operation_timeout),
       "from submission to result")  //
      ("receive-buffer", with_default(worker.receive_buffer_bytes),
       "bytes to ask the kernel for; 0: enough for the window")  //
      ("receive-loss", with_default(worker.receive_loss),
       "probability of losing each received datagram, for tests")  //
      ("record", po::value(&worker.record)->value_name("file"),
       "for every packet sent and received: a capture for natagg-replay, tcpdump and Wireshark")  //
      ("transport", po::value(&worker.transport)->value_name("udp|memif:path[,id=n]|ethdev:device"),
       "udp; memory shared with an aggregator of this host: its net_memif's socket and id; or a "
       "device that DPDK drives, as net_af_packet0,iface=eth1")                            //
      ("transmit-loss", with_default(worker.transmit_loss), "the same, of each sent one")  //
      ("window", with_default(worker.window), "chunks under way per shard, a power of two");
  return description;
}

po::options_description other_options(AllreduceOptions& options) {
  po::options_description description("Other");
  description.add_options()            //
      ("help", "print this and exit")  //
      ("json", po::bool_switch(&options.json),
       "print one JSON object to standard output, and the summary to standard error")  //
      ("version", "print the library's version and exit");
  return description;
}

void apply(const Raw& raw, const po::variables_map& given, AllreduceOptions& options) {
  natagg::Options& worker = options.worker;
  if (raw.rounding != "stochastic" && raw.rounding != "nearest") {
    throw po::error("--rounding is stochastic or nearest, not \"" + raw.rounding + "\"");
  }
  worker.rounding = raw.rounding == "nearest" ? Rounding::kNearest : Rounding::kStochastic;
  const std::optional<DataType> type = type_named(raw.type);
  if (!type) {
    throw po::error("--type is float32, float64, float16 or bfloat16, not \"" + raw.type + "\"");
  }
  options.type = *type;
  worker.connect_timeout = decltype(worker.connect_timeout)(raw.connect_timeout);
  worker.operation_timeout = decltype(worker.operation_timeout)(raw.operation_timeout);
  worker.heartbeat = decltype(worker.heartbeat)(raw.heartbeat);
  worker.busy_poll = decltype(worker.busy_poll)(raw.busy_poll);
  worker.aggregator_timeout = decltype(worker.aggregator_timeout)(raw.aggregator_timeout);
  worker.gso = !given["no-gso"].as<bool>();
  worker.multicast = !given["no-multicast"].as<bool>();
  worker.straggler_deadline = decltype(worker.straggler_deadline)(raw.straggler_deadline);
  options.average = given["average"].as<bool>();
  if (raw.straggler_deadline == 0) {
    options.reduction = options.average ? Reduction::kAverage : Reduction::kSum;
  } else {
    options.reduction = options.average ? Reduction::kPartialAverage : Reduction::kPartialSum;
  }
  if (given.count("count") != 0) options.count = raw.count;
}

void check_together(const AllreduceOptions& options) {
  if (options.input.empty() && !options.count) throw po::error("give --input or --count");
  if (options.in_flight == 0) throw po::error("--in-flight is at least 1");
  if (options.check && !options.input.empty()) {
    throw po::error("--check is for generated values; with --input, give --check-inputs");
  }
  if (!options.check_inputs.empty() && options.check_inputs.size() != options.worker.world) {
    throw po::error("--check-inputs has " + std::to_string(options.check_inputs.size()) +
                    " files for " + std::to_string(options.worker.world) + " ranks");
  }
}

}  // namespace

std::optional<AllreduceOptions> parse_allreduce_options(int argc, const char* const* argv) {
  AllreduceOptions options;
  Raw raw;
  po::options_description all("natagg-allreduce: all-reduces values with other ranks");
  all.add(job_options(options, raw))
      .add(data_options(options, raw))
      .add(network_options(options.worker, raw))
      .add(other_options(options));
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(all).positional({}).run(), given);
  if (given.count("help") != 0) {
    std::cout << all << '\n';
    return std::nullopt;
  }
  if (given.count("version") != 0) {
    std::cout << "natagg " << natagg_version() << '\n';
    return std::nullopt;
  }
  po::notify(given);
  apply(raw, given, options);
  check_together(options);
  return options;
}

}  // namespace natagg::tools
