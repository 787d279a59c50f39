// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// libFuzzer's entry: any bytes are a kernel call, on which all implementations must agree.

#include <cstdio>

#include "differential.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static natagg::fuzz::Case c;
  natagg::fuzz::parse({data, size}, c);
  if (const std::string what = natagg::fuzz::difference(c); !what.empty()) {
    std::fprintf(stderr, "%s\n", what.c_str());
    __builtin_trap();
  }
  return 0;
}
