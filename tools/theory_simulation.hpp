// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the compressors of theory.hpp do to given data. Seeds are fixed: every run gives the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace natagg::theory {

/// Mean of ||C(x) - x||^2 / ||x||^2 over trials, and its expectation for this x.
struct Error {
  double measured = 0;
  double expected = 0;
};

/// Of `count` values, all 2^k (1 + f), by the library's kernels.
[[nodiscard]] Error natural_of(double f, std::size_t count);

/// Of these values, by the library's kernels, as `rank` in so many operations.
[[nodiscard]] Error natural_of(std::span<const float> values, std::uint16_t rank, int trials);

/// Normally distributed.
[[nodiscard]] std::vector<double> normal_vector(std::size_t d);

/// `levels` in ascending order, from 0 to 1, of the 2-norm.
[[nodiscard]] Error dithering_of(std::span<const double> x, std::span<const double> levels,
                                 int trials);
[[nodiscard]] std::vector<double> natural_levels(int s);
[[nodiscard]] std::vector<double> standard_levels(int u);

[[nodiscard]] Error sparsification_of(std::span<const double> x, std::size_t q, int trials);

/// All ranks' sum as the library forms it: encoded, added, recompressed and decoded.
[[nodiscard]] std::vector<float> all_reduce(std::span<const std::vector<float>> inputs,
                                            std::uint32_t operation);

}  // namespace natagg::theory
