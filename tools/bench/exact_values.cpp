// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/bench/exact_values.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace natagg::bench {
namespace {

constexpr float kUnit = 0x1p-96F;
constexpr std::size_t kPeriod = 251;  // a prime: no two chunks of a tensor look alike

/// From 1 to 97.
int number(std::size_t element, std::size_t index, std::uint32_t rank) {
  return 1 + static_cast<int>((element % kPeriod * 7 + index * 31 + rank * 13) % 97);
}

}  // namespace

std::uint64_t longest_exact_row(std::uint32_t world) {
  // From 2^-96 up to 2^104, each operation multiplies by the number of ranks.
  constexpr unsigned octaves = 200;
  return world == 1 ? 1000 : octaves / static_cast<unsigned>(std::bit_width(world - 1));
}

void fill_exact(std::span<float> values, std::size_t index, std::uint32_t rank) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        i < kPeriod ? kUnit * static_cast<float>(number(i, index, rank)) : values[i - kPeriod];
  }
}

void check_exact(std::span<const float> values, std::size_t index, std::uint32_t world) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    float expected = 0;
    if (i < kPeriod) {
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        expected += kUnit * static_cast<float>(number(i, index, rank));
      }
    } else {
      expected = values[i - kPeriod];
    }
    if (values[i] != expected) {
      throw std::runtime_error("check failed: tensor " + std::to_string(index) + " value " +
                               std::to_string(i) + " is " + std::to_string(values[i] / kUnit) +
                               " units, and the sum is " + std::to_string(expected / kUnit));
    }
  }
}

}  // namespace natagg::bench
