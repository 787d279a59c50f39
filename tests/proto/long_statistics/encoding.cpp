// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A worker's rounding: unbiased in every exponent of every type, below the window too; clipped
// above it; and its variance.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "floats.hpp"

namespace natagg::statistics {
namespace {

constexpr std::uint64_t kSeed = 0x6E61'7461'6767'0001;
constexpr double kOmega = 1.0 / 8;

/// The relative variance of rounding 2^k (1 + f), by intervals of f, against f(1-f)/(1+f)^2.
struct ByFraction {
  static constexpr std::size_t kIntervals = 64;
  std::array<double, kIntervals> squares{};
  std::array<double, kIntervals> excess{};    // over what theory says
  std::array<double, kIntervals> variance{};  // of `excess`
  std::array<std::uint64_t, kIntervals> count{};

  void add(double f, double error) {
    const auto interval = static_cast<std::size_t>(f * kIntervals);
    const double scale = 1 / ((1 + f) * (1 + f));
    const double spread = f * (1 - f);  // of `error`; its square has (1-2f)^2 f(1-f)
    squares[interval] += error * error * scale;
    excess[interval] += (error * error - spread) * scale;
    variance[interval] += spread * (1 - 2 * f) * (1 - 2 * f) * scale * scale;
    ++count[interval];
  }
};

template <typename Type>
void in_window(const Type& type, std::uint64_t values, ByFraction* by_fraction, Report& report) {
  const int lowest = std::max(nat8::kMinExponent, Type::kSmallest);
  const auto exponents = static_cast<std::uint64_t>(nat8::kMaxExponent - lowest);
  const std::uint64_t each = whole_pieces(values / exponents);
  Worst worst;
  std::uint64_t wrong = 0;
  for (int exponent = lowest; exponent < nat8::kMaxExponent; ++exponent) {
    Mean mean;
    const int code = exponent - nat8::kMinExponent;
    const auto operation = static_cast<std::uint32_t>(code);
    encode_values(type, exponent, 0, each,
                  {.seed = kSeed, .operation = operation, .who = type.rank},
                  [&](double f, bool negative, std::uint8_t byte) {
                    const int up = (byte & 0x7F) - code;
                    wrong += (up != 0 && up != 1) || negative != ((byte & nat8::kSign) != 0);
                    const double error = up - f;
                    mean.sum += error;
                    mean.variance += f * (1 - f);
                    if (by_fraction != nullptr) by_fraction->add(f, error);
                  });
    worst.add(mean.standard_errors(), exponent);
  }
  const std::string name(type.name);
  report.deviation(name + ": bias in each exponent", exponents * each, worst, "at 2 to the");
  report.none(name + ": neither neighbour, or another sign", 0, wrong);
}

/// Under `shift`, from just below the window down, as far as the values rounded up are enough to
/// be normally distributed.
template <typename Type>
void below_window(const Type& type, int shift, std::uint64_t values, Report& report) {
  constexpr std::uint64_t kRoundedUp = 200;
  int exponents = 14;
  while (exponents > 1 && values / static_cast<unsigned>(exponents) >> exponents < kRoundedUp) {
    --exponents;
  }
  const auto count = static_cast<std::uint64_t>(exponents);
  const std::uint64_t each = whole_pieces(values / count);
  const int bottom = nat8::kMinExponent + shift;
  Worst worst;
  std::uint64_t flushed = 0;
  std::uint64_t zeros = 0;
  for (int below = 1; below <= exponents; ++below) {
    Mean mean;
    const nat8::Tally tally = encode_values(
        type, bottom - below, shift, each,
        {.seed = kSeed, .operation = 100 + static_cast<std::uint32_t>(below), .who = type.rank},
        [&](double f, bool negative, std::uint8_t byte) {
          const double u = std::ldexp(1 + f, -below);
          const bool up = byte == (negative ? nat8::kSign : 0);
          zeros += byte == nat8::kZero;
          mean.sum += (up ? 1 : 0) - u;
          mean.variance += u * (1 - u);
        });
    flushed += tally.flushed;
    worst.add(mean.standard_errors(), bottom - below);
  }
  const std::string name(type.name);
  report.deviation(name + ": bias below the window", count * each, worst, "at 2 to the");
  report.none(name + ": flushed but not counted, or the reverse", 0,
              flushed > zeros ? flushed - zeros : zeros - flushed);
}

template <typename Type>
void above_window(const Type& type, std::uint64_t values, Report& report) {
  constexpr int kExponents = 4;
  const std::uint64_t each = whole_pieces(values / kExponents);
  std::uint64_t wrong = 0;
  for (int above = 0; above < kExponents; ++above) {
    std::uint64_t clipped = 0;
    const nat8::Tally tally =
        encode_values(type, nat8::kMaxExponent + above, 0, each,
                      {.seed = kSeed, .operation = 200, .who = type.rank},
                      [&](double f, bool negative, std::uint8_t byte) {
                        clipped += above > 0 || f > 0;
                        wrong += byte != (nat8::kMaxCode | (negative ? nat8::kSign : 0));
                      });
    wrong += clipped > tally.clipped ? clipped - tally.clipped : tally.clipped - clipped;
  }
  report.none(std::string(type.name) + ": above the window, not the top code", kExponents * each,
              wrong);
}

template <typename Type>
void all_of(const Type& type, int shift, std::uint64_t values, ByFraction* by_fraction,
            Report& report) {
  in_window(type, values / 10 * 8, by_fraction, report);
  below_window(type, shift, values / 10, report);
  above_window(type, values / 10, report);
}

}  // namespace

void encoding(std::uint64_t values, Report& report) {
  const Kernels& kernels = default_kernels();
  ByFraction by_fraction;
  all_of(Float32{"float32", kernels.encode_f32, 0}, 0, values / 10 * 4, &by_fraction, report);
  all_of(Float64{"float64", kernels.encode_f64, 1}, 0, values / 10 * 2, nullptr, report);
  // float16 reaches the window's lower end under a shift only.
  all_of(Float16{"float16", kernels.encode_f16, 2}, 40, values / 10, nullptr, report);
  all_of(Bfloat16{"bfloat16", kernels.encode_bf16, 3}, 0, values / 10 * 3, nullptr, report);

  Worst worst;
  double largest = 0;
  double error = 0;
  for (std::size_t i = 0; i < ByFraction::kIntervals; ++i) {
    const auto count = static_cast<double>(by_fraction.count[i]);
    const double deviation = std::sqrt(by_fraction.variance[i]);
    worst.add(by_fraction.excess[i] / deviation, static_cast<int>(i));
    if (by_fraction.squares[i] / count <= largest) continue;
    largest = by_fraction.squares[i] / count;
    error = deviation / count;
  }
  report.deviation("float32: variance in each 64th of the mantissa", 0, worst, "64th");
  report.within("float32: largest of these variances", 0, largest, kOmega,
                std::max(kOmega / 1000, kMostStandardErrors * error));
}

void variance(std::uint64_t values, Report& report) {
  constexpr int kExponents = nat8::kMaxExponent - nat8::kMinExponent;
  const std::uint64_t each = whole_pieces(values / kExponents);
  const double f = 1.0 / 3;
  const double expected_square = f * (1 - f);
  const double deviation = std::sqrt(expected_square) * (1 - 2 * f);  // of one square
  Worst worst;
  double all = 0;
  std::vector<float> inputs(each);
  std::vector<std::uint8_t> bytes(each);
  nat8::Tally tally;
  for (int exponent = nat8::kMinExponent; exponent < nat8::kMaxExponent; ++exponent) {
    std::fill(inputs.begin(), inputs.end(), std::ldexp(4.0F / 3, exponent));
    const auto operation = static_cast<std::uint32_t>(exponent - nat8::kMinExponent);
    default_kernels().encode_f32(inputs.data(), bytes.data(), each, 0,
                                 {.seed = kSeed + 1, .operation = operation}, 0, tally);
    const auto up = static_cast<double>(std::count(
        bytes.begin(), bytes.end(), static_cast<std::uint8_t>(exponent + 1 - nat8::kMinExponent)));
    const auto n = static_cast<double>(each);
    const double squares = up * (1 - f) * (1 - f) + (n - up) * f * f;
    worst.add((squares / n - expected_square) / (deviation / std::sqrt(n)), exponent);
    all += squares;
  }
  const auto n = static_cast<double>(kExponents * each);
  const double relative = 1 / ((1 + f) * (1 + f));
  report.deviation("variance at 4/3 2^k", kExponents * each, worst, "at 2 to the");
  // One part in a thousand, where so many values can tell.
  const double five = kMostStandardErrors * deviation / std::sqrt(n) * relative;
  report.within("variance at 4/3 2^k over the square, all k", 0, all / n * relative, kOmega,
                std::max(kOmega / 1000, five));
}

}  // namespace natagg::statistics
