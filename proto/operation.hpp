// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What every rank must agree on for one all-reduce, packed without loss into the 64-bit
// fingerprint that each packet of the operation carries. Because nothing is hashed, an
// aggregator that sees two fingerprints can name both lengths.
#pragma once

#include <cstdint>
#include <string>

namespace natagg::proto {

enum class DataType : std::uint8_t { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBfloat16 = 3 };

/// The partial ones may be answered without ranks that are late, where the job allows it.
enum class Reduction : std::uint8_t {
  kSum = 0,
  kAverage = 1,
  kPartialSum = 2,
  kPartialAverage = 3,
};

[[nodiscard]] constexpr bool is_average(Reduction reduction) {
  return reduction == Reduction::kAverage || reduction == Reduction::kPartialAverage;
}

[[nodiscard]] constexpr bool may_be_partial(Reduction reduction) {
  return reduction == Reduction::kPartialSum || reduction == Reduction::kPartialAverage;
}

struct Operation {
  std::uint64_t length = 0;  // values, below 2^56
  DataType type = DataType::kFloat32;
  Reduction reduction = Reduction::kSum;

  constexpr bool operator==(const Operation&) const = default;
};

inline constexpr std::uint64_t kMaxLength = (std::uint64_t{1} << 56) - 1;

/// bits 63..60 type, 59..56 reduction, 55..0 length.
[[nodiscard]] constexpr std::uint64_t fingerprint(const Operation& operation) {
  return std::uint64_t{static_cast<std::uint8_t>(operation.type)} << 60 |
         std::uint64_t{static_cast<std::uint8_t>(operation.reduction)} << 56 |
         (operation.length & kMaxLength);
}

/// The inverse of fingerprint(); unknown type and reduction numbers are kept as they are.
[[nodiscard]] constexpr Operation from_fingerprint(std::uint64_t fingerprint) {
  return {.length = fingerprint & kMaxLength,
          .type = static_cast<DataType>(fingerprint >> 60),
          .reduction = static_cast<Reduction>(fingerprint >> 56 & 0xF)};
}

/// "sum of 215370 float32".
[[nodiscard]] std::string to_string(const Operation& operation);

}  // namespace natagg::proto
