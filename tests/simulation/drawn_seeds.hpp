// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Which seeds the tests of drawn stories play: the first of them, one in so many of
// NATAGG_SIM_SEEDS (default 10,000), beginning at NATAGG_SIM_FIRST (default 0); or only
// NATAGG_SIM_SEED.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace natagg::simulation {

/// Plays a seed for every `one_in`; `play` returns what is wrong, empty when nothing is. Stops
/// after five that fail, each reported with how to replay it.
void play_seeds(std::uint64_t one_in, const std::function<std::string(std::uint64_t)>& play);

}  // namespace natagg::simulation
