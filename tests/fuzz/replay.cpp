// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-replay-TARGET [INPUTS [SEED [BYTES]]] [FILE OR DIRECTORY]...: feeds a fuzzer's entry with
// so many pseudo-random inputs (0) of up to BYTES bytes (90), the same for the same seed (1), then
// with files that libFuzzer has left. Any compiler builds it.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "proto/splitmix.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const std::uint8_t* current = nullptr;
std::size_t current_size = 0;

/// Keeps the input that ends the process, as libFuzzer does.
void keep_input(int signal) {
  const int file = ::open("replay-crash", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && ::write(file, current, current_size) == static_cast<ssize_t>(current_size)) {
    constexpr char kText[] = "the input is in replay-crash\n";
    static_cast<void>(::write(STDERR_FILENO, kText, sizeof(kText) - 1) == 0);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run(const std::uint8_t* data, std::size_t size) {
  current = data;
  current_size = size;
  LLVMFuzzerTestOneInput(data, size);
}

void replay_random(std::uint64_t inputs, std::uint64_t seed, std::size_t most) {
  std::vector<std::uint8_t> bytes(most + 8);
  natagg::proto::SplitMix64 random(seed);
  for (std::uint64_t n = 0; n < inputs; ++n) {
    const std::size_t size = most - random.next() % (most / 2 + 1);
    for (std::size_t i = 0; i < size; i += 8) {
      const std::uint64_t eight = random.next();
      __builtin_memcpy(&bytes[i], &eight, sizeof(eight));
    }
    run(bytes.data(), size);
  }
  std::printf("%llu inputs, seed %llu: nothing found\n", static_cast<unsigned long long>(inputs),
              static_cast<unsigned long long>(seed));
}

bool replay_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "natagg-replay: cannot read %s\n", path.c_str());
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  // An input that ends the process would otherwise leave no name.
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  run(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

bool replay_path(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return replay_file(path);
  std::vector<std::filesystem::path> files(std::filesystem::directory_iterator{path}, {});
  std::sort(files.begin(), files.end());
  return std::all_of(files.begin(), files.end(), replay_file);
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGILL, SIGTRAP, SIGSEGV, SIGABRT}) ::signal(signal, keep_input);
  std::uint64_t numbers[] = {0, 1, 90};
  int at = 1;
  for (std::uint64_t& number : numbers) {
    if (at == argc || std::isdigit(static_cast<unsigned char>(*argv[at])) == 0) break;
    number = std::strtoull(argv[at++], nullptr, 10);
  }
  if (numbers[0] != 0) replay_random(numbers[0], numbers[1], std::max<std::size_t>(1, numbers[2]));
  return std::all_of(argv + at, argv + argc, replay_path) ? 0 : 2;
}
