// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The golden vectors of proto/vectors as the code computes them now. make_vectors writes the
// files; a test compares, so that neither files nor code can drift.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace natagg::vectors {

struct File {
  std::string_view name;
  std::string (*text)();
};

[[nodiscard]] std::string packets();
[[nodiscard]] std::string encode();
[[nodiscard]] std::string recompress();
[[nodiscard]] std::string decode();
[[nodiscard]] std::string philox();

inline constexpr std::array kFiles = {
    File{"packets.csv", packets}, File{"encode.csv", encode}, File{"recompress.csv", recompress},
    File{"decode.csv", decode},   File{"philox.csv", philox},
};

}  // namespace natagg::vectors
