// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a user writes: built by natagg.pc's flags alone. It prints the library's version and why
// there is no aggregator at the address that it is given.
#include <natagg/worker.hpp>

#include <iostream>
#include <vector>

int main(int, char** arguments) {
  std::cout << natagg_version() << '\n';
  try {
    natagg::Worker worker(
        {.aggregators = arguments[1], .connect_timeout = std::chrono::milliseconds(100)});
    std::vector<natagg::Bfloat16> gradient(1000);
    worker.allreduce_async(gradient, natagg::Reduction::kAverage).wait();
  } catch (const natagg::Error& error) {
    std::cout << natagg_status_string(error.status()) << ": " << error.what() << '\n';
  }
}
