// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The aggregator's rounding: unbiased in every exponent of the sum; and both roundings after each
// other.

#include <array>
#include <cmath>
#include <vector>

#include "proto/kernels.hpp"
#include "report.hpp"

namespace natagg::statistics {
namespace {

constexpr std::uint64_t kSeed = 0x6E61'7461'6767'0002;
constexpr std::uint16_t kAggregator = 0xFFFF;
constexpr std::size_t kPiece = 8192;

std::uint64_t pieces(std::uint64_t values) {
  return (values + kPiece - 1) / kPiece;
}

}  // namespace

void recompression(std::uint64_t values, Report& report) {
  constexpr int kExponents = 63;  // of a positive int64
  const std::uint64_t each = pieces(values / kExponents);
  Random random(kSeed);
  std::vector<std::int64_t> sums(kPiece);
  std::vector<std::uint8_t> bytes(kPiece);
  Worst worst;
  std::uint64_t wrong = 0;
  for (int exponent = 0; exponent < kExponents; ++exponent) {
    const proto::RoundingKey key{
        .seed = kSeed, .operation = static_cast<std::uint32_t>(exponent), .who = kAggregator};
    Mean mean;
    for (std::uint64_t piece = 0; piece < each; ++piece) {
      for (std::int64_t& sum : sums) {
        const std::uint64_t bits = random.next();
        const std::int64_t one = std::int64_t{1} << exponent;
        const std::int64_t magnitude = one + (static_cast<std::int64_t>(bits >> 1) & (one - 1));
        sum = (bits & 1) != 0 ? -magnitude : magnitude;
      }
      nat8::Tally tally;
      default_kernels().recompress(sums.data(), bytes.data(), kPiece, piece * kPiece, key, tally);
      for (std::size_t i = 0; i < kPiece; ++i) {
        wrong += (sums[i] < 0) != ((bytes[i] & nat8::kSign) != 0);
        const int code = bytes[i] & 0x7F;
        if (exponent >= nat8::kMaxCode) {
          wrong += code != nat8::kMaxCode;
          continue;
        }
        wrong += code != exponent && code != exponent + 1;
        const double f = std::ldexp(std::fabs(static_cast<double>(sums[i])), -exponent) - 1;
        mean.sum += code - exponent - f;
        mean.variance += f * (1 - f);
      }
      if (exponent > nat8::kMaxCode) wrong += kPiece - tally.clipped;
    }
    worst.add(mean.standard_errors(), exponent);
  }
  report.deviation("sums: bias in each exponent", kExponents * each * kPiece, worst, "at 2 to the");
  report.none("sums: neither neighbour, another sign, not clipped", 0, wrong);
}

void whole_path(std::uint64_t values, Report& report) {
  constexpr std::size_t kWorkers = 8;
  const std::uint64_t count = pieces(values / kWorkers);
  const Kernels& kernels = default_kernels();
  Random random(kSeed + 1);
  std::vector<float> inputs(kPiece);
  std::vector<double> exact(kPiece);
  std::vector<std::uint8_t> bytes(kPiece);
  std::vector<std::int64_t> slots(kPiece);
  std::vector<double> result(kPiece);
  Worst worst;
  Mean mean;
  nat8::Tally tally;
  for (std::uint64_t piece = 0; piece < count; ++piece) {
    exact.assign(kPiece, 0);
    slots.assign(kPiece, 0);
    const std::uint64_t first = piece * kPiece;
    for (std::uint16_t worker = 0; worker < kWorkers; ++worker) {
      for (std::size_t i = 0; i < kPiece; ++i) {
        inputs[i] = std::ldexp(static_cast<float>(static_cast<std::int64_t>(random.next())), -66);
        exact[i] += double{inputs[i]};
      }
      kernels.encode_f32(inputs.data(), bytes.data(), kPiece, first,
                         {.seed = kSeed, .operation = 7, .who = worker}, 0, tally);
      kernels.accumulate(bytes.data(), slots.data(), kPiece);
    }
    kernels.recompress(slots.data(), bytes.data(), kPiece, first,
                       {.seed = kSeed, .operation = 7, .who = kAggregator}, tally);
    kernels.decode_f64(bytes.data(), result.data(), kPiece, 0, 1);
    for (std::size_t i = 0; i < kPiece; ++i) {
      const double error = result[i] - exact[i];
      mean.sum += error;
      mean.variance += error * error;
    }
  }
  worst.add(mean.standard_errors(), kWorkers);
  report.deviation("encode, add and recompress: bias", count * kPiece * kWorkers, worst,
                   "workers:");
}

}  // namespace natagg::statistics
