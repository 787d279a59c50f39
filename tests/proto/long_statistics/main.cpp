// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-statistics [--values N]: what random rounding does over N values (10^9 unless given), by
// the kernels that the library would use; NATAGG_KERNELS names others. Always the same values and
// seeds. Exit status: 0 all within bounds, 1 not, 2 wrong usage.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "proto/kernels.hpp"
#include "report.hpp"

int main(int argc, char** argv) {
  using namespace natagg;
  double values = 1e9;
  if (argc == 3 && std::string_view(argv[1]) == "--values") {
    values = std::strtod(argv[2], nullptr);
  } else if (argc != 1) {
    values = 0;
  }
  if (!(values >= 1e6 && values <= 1e12)) {
    std::fputs("usage: natagg-statistics [--values N], N from 1e6 to 1e12\n", stderr);
    return 2;
  }
  const auto hundredth = static_cast<std::uint64_t>(values / 100);
  const std::string_view name = default_kernels().name;
  std::printf("kernels: %.*s\n", static_cast<int>(name.size()), name.data());
  statistics::Report report;
  statistics::encoding(50 * hundredth, report);
  statistics::variance(20 * hundredth, report);
  statistics::recompression(15 * hundredth, report);
  statistics::whole_path(5 * hundredth, report);
  statistics::generator(12 * hundredth, report);
  std::printf("%llu values: %s\n", static_cast<unsigned long long>(report.values()),
              report.passed() ? "all within bounds" : "NOT all within bounds");
  return report.passed() ? 0 : 1;
}
