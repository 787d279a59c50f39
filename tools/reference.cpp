// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/reference.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

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

std::uint8_t encode(const Tensor& tensor, std::size_t i, int shift, std::uint64_t fraction) {
  nat8::Tally tally;
  const auto bits = tensor.values<std::uint16_t>();
  switch (tensor.type()) {
    case DataType::kFloat32: return nat8::encode(tensor.values<float>()[i], shift, fraction, tally);
    case DataType::kFloat64:
      return nat8::encode(tensor.values<double>()[i], shift, fraction, tally);
    case DataType::kFloat16: return nat8::encode_float16(bits[i], shift, fraction, tally);
    case DataType::kBfloat16: return nat8::encode_bfloat16(bits[i], shift, fraction, tally);
  }
  return nat8::kNan;
}

void decode(std::uint8_t byte, int shift, std::uint32_t divisor, Tensor& tensor, std::size_t i) {
  const auto bits = tensor.values<std::uint16_t>();
  switch (tensor.type()) {
    case DataType::kFloat32:
      tensor.values<float>()[i] = nat8::decode_float(byte, shift, divisor);
      break;
    case DataType::kFloat64:
      tensor.values<double>()[i] = nat8::decode_double(byte, shift, divisor);
      break;
    case DataType::kFloat16: bits[i] = nat8::decode_float16(byte, shift, divisor); break;
    case DataType::kBfloat16: bits[i] = nat8::decode_bfloat16(byte, shift, divisor); break;
  }
}

}  // namespace

Tensor reference_allreduce(std::span<const Tensor> inputs, const ReferenceTerms& terms) {
  const auto world = static_cast<std::uint32_t>(inputs.size());
  const std::uint32_t divisor = proto::is_average(terms.reduction) ? world : 1;
  const auto fractions_of = [&](std::uint16_t who) {
    return proto::RoundingFractions({terms.seed, terms.operation, who, terms.rounding});
  };
  std::vector<proto::RoundingFractions> fractions;
  for (std::uint16_t rank = 0; rank < world; ++rank) fractions.push_back(fractions_of(rank));
  proto::RoundingFractions aggregator = fractions_of(proto::kAggregatorRank);
  Tensor result(inputs.front().type(), inputs.front().size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::uint64_t element = terms.first + i;
    Sum sum;
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      sum.add(encode(inputs[rank], i, terms.shift, fractions[rank](element)));
    }
    const std::uint8_t byte = sum.recompress(aggregator(element));
    decode(byte, terms.shift, divisor, result, i);
  }
  return result;
}

}  // namespace natagg::tools
