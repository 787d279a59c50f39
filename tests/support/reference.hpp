// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The whole all-reduce computed directly from its definition (nat8.hpp, rounding.hpp), in exact
// integers and without chunks, slots, packets or kernels. The bits that every rank of every
// layout must get are these.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "proto/operation.hpp"
#include "proto/rounding.hpp"

namespace natagg::reference {

/// What the result depends on, besides the ranks' values.
struct Terms {
  std::uint64_t seed = 0;
  std::uint32_t operation = 0;  // index in the job
  proto::Rounding rounding = proto::Rounding::kStochastic;
  int shift = 0;
  proto::Reduction reduction = proto::Reduction::kSum;
};

/// The nat8 byte of `value`.
[[nodiscard]] std::uint8_t encode(float value, int shift, std::uint64_t fraction);

/// The value of a nat8 byte over `divisor`, which is at most 2^12.
[[nodiscard]] float decode(std::uint8_t byte, int shift, std::uint32_t divisor);

/// The nat8 byte that the aggregator sends for element `element`, from every rank's byte.
[[nodiscard]] std::uint8_t reduce(std::span<const std::uint8_t> bytes, const Terms& terms,
                                  std::uint64_t element);

/// What every rank gets; inputs[r] are rank r's values, all of one length.
[[nodiscard]] std::vector<float> all_reduce(std::span<const std::vector<float>> inputs,
                                            const Terms& terms);

}  // namespace natagg::reference
