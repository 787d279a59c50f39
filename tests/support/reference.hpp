// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The whole all-reduce computed directly from its definition (nat8.hpp, rounding.hpp), in exact
// integers and without chunks, slots, packets or kernels. The bits that every rank of every
// layout must get are these.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "natagg/types.hpp"
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

/// Every value of every type is a double: this one, and the type's value nearest to a double, ties
/// to even. What is beyond the type's range becomes infinite.
template <Value T>
[[nodiscard]] double to_double(T value);
template <Value T>
[[nodiscard]] T round_to(double value);

/// The nat8 byte of `value`.
[[nodiscard]] std::uint8_t encode(double value, int shift, std::uint64_t fraction);

/// The value of a nat8 byte over `divisor`, rounded to double. Rounding that once more to a shorter
/// type is rounding the exact quotient: with a divisor below 2^17 and at most 24 significant bits,
/// it is no closer than 2^-42 of itself to a tie that it does not hit, and double has 53 bits.
[[nodiscard]] double decode(std::uint8_t byte, int shift, std::uint32_t divisor);

/// The nat8 byte that the aggregator sends for element `element`, from every rank's byte.
[[nodiscard]] std::uint8_t reduce(std::span<const std::uint8_t> bytes, const Terms& terms,
                                  std::uint64_t element);

/// What every rank gets; inputs[r] are rank r's values, all of one length.
template <Value T>
[[nodiscard]] std::vector<T> all_reduce(const std::vector<std::vector<T>>& inputs,
                                        const Terms& terms);

/// The same for elements `first` to `first` + `count` of what comes of some ranks alone, whose
/// values stand for all.
[[nodiscard]] std::vector<float> reduce_some(const std::vector<std::vector<float>>& inputs,
                                             const std::vector<std::uint16_t>& ranks,
                                             const Terms& terms, std::uint64_t first,
                                             std::size_t count);

}  // namespace natagg::reference
