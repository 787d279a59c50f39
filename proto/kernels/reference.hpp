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

/// The byte of one value, or of its bits where C++ has no type for it, with the whole R.
template <typename Element>
using Reference = std::uint8_t(Element value, int shift, std::uint64_t fraction,
                               nat8::Tally& tally);

/// nat8::recompress; a slot's sum counts in the shifted unit already, so `shift` has no effect.
Reference<std::int64_t> reference_sum;

/// R of `element`, given its upper 16 bits where they are random.
std::uint64_t whole_fraction(const proto::RoundingKey& key, std::uint64_t element,
                             std::uint16_t coarse);

/// Whether every code's value over `divisor` is in the normal range of float32 and bfloat16, so
/// that a step of one code is one in the exponent field.
bool quotients_are_normal(int shift, std::uint32_t divisor);

/// The bits of code 0's value over `divisor` as a normal float32, cut off towards zero with the
/// last bit set when anything was lost. Rounding that once more to a shorter format gives what
/// rounding the exact quotient gives.
std::uint32_t odd_quotient(int shift, std::uint32_t divisor);

}  // namespace natagg
