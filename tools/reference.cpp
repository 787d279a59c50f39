// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/reference.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "proto/nat8.hpp"
#include "proto/packet.hpp"

namespace natagg::tools {
namespace {

__extension__ using Wide = __int128;

/// The exact sum of bytes, and what is special about it.
struct Sum {
  Wide units = 0;
  bool nan = false;
  bool positive_inf = false;
  bool negative_inf = false;

  void add(std::uint8_t byte) {
    units += nat8::addend(byte);
    nan |= byte == nat8::kNan;
    positive_inf |= byte == nat8::kPositiveInf;
    negative_inf |= byte == nat8::kNegativeInf;
  }

  [[nodiscard]] std::uint8_t recompress(std::uint64_t fraction) const {
    if (nan || (positive_inf && negative_inf)) return nat8::kNan;
    if (positive_inf) return nat8::kPositiveInf;
    if (negative_inf) return nat8::kNegativeInf;
    // Beyond int64, or close to it, a sum clips to the largest code all the same.
    const Wide bounded = std::clamp<Wide>(units, INT64_MIN + 1, INT64_MAX);
    nat8::Tally tally;
    return nat8::recompress(static_cast<std::int64_t>(bounded), fraction, tally);
  }
};

}  // namespace

std::vector<float> reference_allreduce(std::span<const std::vector<float>> inputs,
                                       const ReferenceTerms& terms) {
  const auto world = static_cast<std::uint32_t>(inputs.size());
  const std::uint32_t divisor = terms.reduction == proto::Reduction::kAverage ? world : 1;
  const auto fraction = [&](std::uint16_t who, std::size_t element) {
    return proto::rounding_fraction({terms.seed, terms.operation, who, terms.rounding}, element);
  };
  std::vector<float> result(inputs.front().size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    Sum sum;
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      nat8::Tally tally;
      sum.add(nat8::encode(inputs[rank][i], terms.shift, fraction(rank, i), tally));
    }
    const std::uint8_t byte = sum.recompress(fraction(proto::kAggregatorRank, i));
    result[i] = nat8::decode_float(byte, terms.shift, divisor);
  }
  return result;
}

std::size_t first_difference(std::span<const float> a, std::span<const float> b) {
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  return static_cast<std::size_t>(std::ranges::mismatch(a, b, same_bits).in1 - a.begin());
}

}  // namespace natagg::tools
