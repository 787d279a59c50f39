// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#pragma once

#include <cstdint>

namespace natagg::worker {

/// Nanoseconds of any monotonic clock.
using Time = std::int64_t;
inline constexpr Time kNever = INT64_MAX;

}  // namespace natagg::worker
