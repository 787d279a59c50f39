// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Files of little-endian values without a header, and values made up in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/tensor.hpp"

namespace natagg::tools {

/// All values of the file at `path`, or its first `count`. Throws std::runtime_error naming it.
[[nodiscard]] Tensor read_tensor(const std::string& path, DataType type,
                                 std::optional<std::size_t> count = {});

/// Throws std::runtime_error naming the file.
void write_tensor(const std::string& path, const Tensor& tensor);

/// Values like a gradient's that depend on nothing but the arguments: one in eight is zero, the
/// others have either sign and exponents from -43 to -4; float16's end in its denormals.
[[nodiscard]] Tensor generate_tensor(DataType type, std::uint64_t data_seed, std::uint32_t rank,
                                     std::size_t count);

}  // namespace natagg::tools
