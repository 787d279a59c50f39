// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The main function of a rank program. Exit status: 0 measured, 1 something failed, 2 wrong usage.
#pragma once

#include <boost/program_options.hpp>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "tools/bench/measurement.hpp"
#include "tools/bench/rank_options.hpp"
#include "tools/bench/reducer.hpp"

namespace natagg::bench {

/// `make` takes the RankOptions and returns the reducer, connected, once `own` options are set.
template <typename Make>
int run_rank(int argc, char** argv, const boost::program_options::options_description& own,
             const Make& make) {
  try {
    const std::optional<RankOptions> options = parse_rank_options(argc, argv, own);
    if (!options) return 0;
    const std::unique_ptr<Reducer> reducer = make(*options);
    const std::string report = measure(*reducer, *options);
    // Not to standard output, where mpirun mixes what its ranks write.
    std::ofstream file(options->directory + "/rank" + std::to_string(reducer->rank()) + ".json");
    file << report << std::endl;
    if (!file) throw std::runtime_error("cannot write to " + options->directory);
    return 0;
  } catch (const boost::program_options::error& error) {
    std::cerr << argv[0] << ": " << error.what() << "; --help lists the options\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace natagg::bench
