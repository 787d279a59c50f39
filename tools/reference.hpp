// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What an all-reduce must give, value by value from the definitions in proto/: no kernels,
// packets, chunks or network. Slow, and independent of all that the library does.
#pragma once

#include <cstdint>
#include <span>

#include "proto/operation.hpp"
#include "proto/rounding.hpp"
#include "tools/tensor.hpp"

namespace natagg::tools {

struct ReferenceTerms {
  std::uint64_t seed = 0;
  std::uint32_t operation = 0;  // index in the job
  proto::Rounding rounding = proto::Rounding::kStochastic;
  int shift = 0;
  proto::Reduction reduction = proto::Reduction::kSum;
  std::uint64_t first = 0;  // element of the operation that the first value is
};

/// inputs[r] are rank r's values; all have one type and length.
[[nodiscard]] Tensor reference_allreduce(std::span<const Tensor> inputs,
                                         const ReferenceTerms& terms);

}  // namespace natagg::tools
