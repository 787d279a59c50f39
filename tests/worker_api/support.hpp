// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the tests of the public interface share: connecting several ranks from one thread, and data.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "natagg/worker.hpp"

namespace natagg::testing {

/// Runs `body(rank)` for ranks 0 to world - 1 in a thread each; rethrows the first exception.
template <typename Body>
void on_all_ranks(std::uint32_t world, Body body) {
  std::vector<std::exception_ptr> errors(world);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// Connects ranks 0 to world - 1 with `options`, whose rank and world do not matter.
inline std::vector<Worker> connect_all(std::uint32_t world, const Options& options) {
  std::vector<std::optional<Worker>> connected(world);
  on_all_ranks(world, [&](std::uint32_t rank) {
    Options own = options;
    own.rank = rank;
    own.world = world;
    connected[rank].emplace(own);
  });
  std::vector<Worker> workers;
  for (std::optional<Worker>& worker : connected) workers.push_back(std::move(*worker));
  return workers;
}

/// Values of both signs over the exponents that gradients have, with zeros among them.
inline std::vector<float> gradient(std::uint64_t seed, std::size_t length) {
  std::mt19937_64 random(seed);
  std::vector<float> values(length);
  for (float& value : values) {
    const std::uint64_t bits = random();
    if (bits % 8 == 0) continue;
    const auto exponent = static_cast<std::uint32_t>(127 - 3 - bits / 8 % 40);
    const auto fraction = static_cast<std::uint32_t>(bits >> 32);
    value = std::bit_cast<float>((fraction & 0x807F'FFFF) | exponent << 23);
  }
  return values;
}

inline std::vector<std::vector<float>> gradients(std::uint32_t world, std::size_t length) {
  std::vector<std::vector<float>> inputs;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    inputs.push_back(gradient(1000 * length + rank, length));
  }
  return inputs;
}

/// For comparisons where -0 is not 0, and NaN equals itself.
template <Value T>
std::vector<std::uint64_t> bits_of(const std::vector<T>& values) {
  std::vector<std::uint64_t> bits(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(&bits[i], &values[i], sizeof(T));
  return bits;
}

/// Chunks that `worker` has sent, each counted once: a busy machine may make it send one again.
inline std::uint64_t chunks_sent(const Worker& worker) {
  const natagg_statistics statistics = worker.statistics();
  return statistics.data_packets - statistics.retransmissions;
}

/// The Error that `body` throws; none fails the test.
template <typename Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(NATAGG_OK, -1, "no error");
}

}  // namespace natagg::testing
