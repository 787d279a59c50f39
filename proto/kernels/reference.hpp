// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One element by the reference, for the few lanes that a vector kernel does not decide itself.
// Defined out of line: an inline function would be compiled once more for each instruction set,
// and the linker could keep the copy that an older CPU can't run.
#pragma once

#include <cstdint>

#include "proto/nat8.hpp"
#include "proto/rounding.hpp"

namespace natagg {

std::uint8_t reference_byte(float value, std::uint64_t element, const proto::RoundingKey& key,
                            int shift, nat8::Tally& tally);

/// Of a slot's sum; a sum already counts in the shifted unit, so `shift` has no effect.
std::uint8_t reference_byte(std::int64_t sum, std::uint64_t element, const proto::RoundingKey& key,
                            int shift, nat8::Tally& tally);

}  // namespace natagg
