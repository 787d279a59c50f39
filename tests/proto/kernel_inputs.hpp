// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Seeded inputs for kernels, dense in edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace natagg::inputs {

/// Values in and around the codes' window under `shift`, zeros, denormals, values just beside
/// both ends of the window and powers of two, infinities, quiet and signalling NaNs.
[[nodiscard]] std::vector<float> floats(std::size_t count, int shift, std::uint64_t seed);

/// Likewise; and such as differ from an edge in their last bits only.
[[nodiscard]] std::vector<double> doubles(std::size_t count, int shift, std::uint64_t seed);

/// Any 16 bits.
[[nodiscard]] std::vector<std::uint16_t> halves(std::size_t count, std::uint64_t seed);

/// Sums of every magnitude and sign, zeros, and the ends of int64.
[[nodiscard]] std::vector<std::int64_t> sums(std::size_t count, std::uint64_t seed);

/// Sums to which one more byte can be added.
[[nodiscard]] std::vector<std::int64_t> small_sums(std::size_t count, std::uint64_t seed);

[[nodiscard]] std::vector<std::uint8_t> valid_bytes(std::size_t count, std::uint64_t seed);
[[nodiscard]] std::vector<std::uint8_t> every_valid_byte();

}  // namespace natagg::inputs
