// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a stream's configuration may be.
#pragma once

#include "worker_lib/core/stream.hpp"

namespace natagg::worker {

/// Throws std::invalid_argument naming the first field that is out of range.
void validate(const StreamConfig& config);

}  // namespace natagg::worker
