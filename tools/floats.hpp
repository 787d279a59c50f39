// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Files of little-endian float32 without a header, and values made up in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace natagg::tools {

/// All values of the file at `path`, or its first `count`. Throws std::runtime_error naming it.
[[nodiscard]] std::vector<float> read_floats(const std::string& path,
                                             std::optional<std::size_t> count = {});

/// Throws std::runtime_error naming the file.
void write_floats(const std::string& path, std::span<const float> values);

/// Values like a gradient's that depend on nothing but the arguments: one in eight is zero, the
/// others have either sign and exponents from -43 to -4.
[[nodiscard]] std::vector<float> generate_floats(std::uint64_t data_seed, std::uint32_t rank,
                                                 std::size_t count);

}  // namespace natagg::tools
