// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-kernels: the kernels' implementations in this build, best first, which of them this CPU
// supports, and which one the library takes. Exit status: 0; 1 when NATAGG_KERNELS names none that
// is usable here, which the library passes over; 2 wrong usage.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "proto/kernels.hpp"

int main(int argc, char** argv) {
  if (argc > 1) {
    const bool help = std::string_view(argv[1]) == "--help";
    std::fputs(
        "usage: natagg-kernels\n"
        "Lists the kernels' implementations. The environment variable NATAGG_KERNELS chooses "
        "one.\n",
        help ? stdout : stderr);
    return help ? 0 : 2;
  }
  const std::string_view chosen = natagg::default_kernels().name;
  for (const natagg::Kernels& kernels : natagg::all_kernels()) {
    std::printf("%-8s %s%s\n", std::string(kernels.name).c_str(),
                kernels.supported() ? "supported" : "not supported",
                kernels.name == chosen ? ", chosen" : "");
  }
  const char* named = std::getenv("NATAGG_KERNELS");
  if (named == nullptr || chosen == named) return 0;
  std::fprintf(stderr, "natagg-kernels: NATAGG_KERNELS is %s, which is not usable here\n", named);
  return 1;
}
