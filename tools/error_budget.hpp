// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What theory says about the error of an all-reduce of given inputs, and what it was.
//
// The result is r = C(S), S = sum of C(x_i), where C rounds to a power of two without bias and with
// fresh randomness every time. With s the exact sum of the x_i, the errors of the two stages are
// uncorrelated:
//
//   E||r - s||^2 = E||S - s||^2 + E||r - S||^2
//
// A value t between 2^k and 2^(k+1) is rounded with variance (|t| - 2^k)(2^(k+1) - |t|), at most
// |t|^2 / 8: C has w = 1/8. So the first term is a plain sum over the inputs, and the second one
// over the outcomes of S. Without looking at the mantissas, the bound for any data is
//
//   E||r - s||^2 <= (1 + w) w sum ||x_i||^2 + w ||s||^2,    w = 1/8.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace natagg::tools {

inline constexpr double kOmega = 1.0 / 8;

/// Variance of rounding `value` to its neighbouring powers of two within the window of exponents
/// that `shift` moves; below it to 0 or its least power, above it none (clipping is biased).
[[nodiscard]] double rounding_variance(double value, int shift);

/// Squared norms, over all elements.
struct ErrorBudget {
  double inputs = 0;           // sum of ||x_i||^2
  double sum = 0;              // ||s||^2
  double worker_variance = 0;  // E||S - s||^2, exactly
  /// E||r - S||^2, exactly; absent where there are too many ranks to go through all outcomes.
  std::optional<double> aggregator_variance;
  double measured = 0;  // ||r - s||^2

  /// At most this is E||r - S||^2: w E||S||^2.
  [[nodiscard]] double aggregator_bound() const { return kOmega * (sum + worker_variance); }

  /// At most this is E||r - s||^2 for any inputs of these norms.
  [[nodiscard]] double bound() const { return (1 + kOmega) * kOmega * inputs + kOmega * sum; }
};

/// `scale` times `result` is r: 1 for a sum, the number of ranks for an average. All have one
/// length. Elements with a NaN or an infinity are left out.
[[nodiscard]] ErrorBudget compare(std::span<const std::vector<float>> inputs,
                                  std::span<const float> result, double scale, int shift);

}  // namespace natagg::tools
