// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The same call by every implementation that this CPU supports, each beside the scalar one.
#pragma once

#include <string>

#include "kernel_case.hpp"

namespace natagg::fuzz {

/// Empty when all agree in every bit of output and tally and none wrote beyond its output, else
/// who differs and where.
[[nodiscard]] std::string difference(const Case& c);

}  // namespace natagg::fuzz
