// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/bench/rank_options.hpp"

#include <iostream>

namespace natagg::bench {

namespace po = boost::program_options;

std::optional<RankOptions> parse_rank_options(int argc, const char* const* argv,
                                              const po::options_description& own) {
  RankOptions options;
  std::uint32_t limit = 120;
  po::options_description all("One rank of natagg-bench, which starts them");
  all.add_options()                                                        //
      ("count", po::value(&options.count)->required(), "values a tensor")  //
      ("directory", po::value(&options.directory)->required(),
       "a new one, where the ranks meet and report")  //
      ("help", "print this and exit")                 //
      ("interface", po::value(&options.interface)->default_value(options.interface),
       "whose bytes are counted")  //
      ("least", po::value(&options.least)->default_value(options.least),
       "operations to count, however long they take")                                       //
      ("limit", po::value(&limit)->default_value(limit), "seconds to wait for the others")  //
      ("most", po::value(&options.most)->default_value(options.most),
       "operations to count")  //
      ("seconds", po::value(&options.seconds)->default_value(options.seconds),
       "to measure for")  //
      ("tensors", po::value(&options.tensors)->default_value(options.tensors),
       "handed over together, as one operation")  //
      ("watch", po::value(&options.watch)->multitoken(), "processes whose CPU time rank 0 reports");
  all.add(own);
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(all).positional({}).run(), given);
  if (given.count("help") != 0) {
    std::cout << all << '\n';
    return std::nullopt;
  }
  po::notify(given);
  if (options.count == 0 || options.tensors == 0) throw po::error("an operation has values");
  options.limit = std::chrono::seconds(limit);
  return options;
}

}  // namespace natagg::bench
