// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-fuzz-replay [INPUTS [SEED]]: feeds the fuzzer's entry with pseudo-random inputs, the same
// for the same seed; natagg-fuzz-replay FILE...: with files that libFuzzer has left. Any compiler
// builds it.

#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "kernel_case.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::uint64_t next(std::uint64_t& state) {
  std::uint64_t x = state += 0x9E37'79B9'7F4A'7C15;  // SplitMix64
  x = (x ^ x >> 30) * 0xBF58'476D'1CE4'E5B9;
  x = (x ^ x >> 27) * 0x94D0'49BB'1331'11EB;
  return x ^ x >> 31;
}

void replay_random(std::uint64_t inputs, std::uint64_t seed) {
  std::array<std::uint8_t, natagg::fuzz::kHeaderBytes + 64> bytes{};
  std::uint64_t state = seed;
  for (std::uint64_t n = 0; n < inputs; ++n) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      const std::uint64_t random = next(state);
      for (std::size_t j = i; j < i + 8 && j < bytes.size(); ++j) {
        bytes[j] = static_cast<std::uint8_t>(random >> (8 * (j - i)));
      }
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%llu inputs, seed %llu: all implementations agree\n",
              static_cast<unsigned long long>(inputs), static_cast<unsigned long long>(seed));
}

bool replay_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "natagg-fuzz-replay: cannot read %s\n", path);
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::isdigit(static_cast<unsigned char>(*argv[1])) == 0) {
    bool readable = true;
    for (int i = 1; i < argc; ++i) readable &= replay_file(argv[i]);
    return readable ? 0 : 2;
  }
  replay_random(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000,
                argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  return 0;
}
