// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Values whose sum over the ranks float32 holds exactly in any order of summation, for libraries
// that add floats: small integers times 2^-96. In place, where the sum is what the next operation
// sums again, a row of operations stays finite and above denormals, which would be slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace natagg::bench {

/// Operations in place that may follow each other.
[[nodiscard]] std::uint64_t longest_exact_row(std::uint32_t world);

/// `values` are `rank`'s of tensor `index`.
void fill_exact(std::span<float> values, std::size_t index, std::uint32_t rank);

/// Throws std::runtime_error naming the first value that is not the sum over `world` ranks.
void check_exact(std::span<const float> values, std::size_t index, std::uint32_t world);

}  // namespace natagg::bench
