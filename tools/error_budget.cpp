// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/error_budget.hpp"

#include <algorithm>
#include <cmath>

#include "proto/nat8.hpp"

namespace natagg::tools {
namespace {

/// Ranks up to which the 2^n outcomes of an element's sum are gone through one by one.
constexpr std::size_t kEnumeratedRanks = 10;

/// The two values that `magnitude` may be rounded to, and the probability of the upper one.
struct Neighbours {
  double lower = 0;
  double upper = 0;
  double probability = 0;
};

Neighbours neighbours(double magnitude, int shift) {
  const double least = std::ldexp(1.0, nat8::kMinExponent + shift);
  const double most = std::ldexp(1.0, nat8::kMaxExponent + shift);
  if (magnitude >= most) return {.lower = most, .upper = most, .probability = 0};
  if (magnitude < least) {
    return {.lower = 0, .upper = least, .probability = magnitude / least};
  }
  const double lower = std::ldexp(1.0, std::ilogb(magnitude));
  return {.lower = lower, .upper = 2 * lower, .probability = magnitude / lower - 1};
}

/// Expectation of rounding_variance() over all outcomes of the sum of `values`, of which the
/// first is to be decided next.
double expected_variance(std::span<const float> values, double sum, int shift) {
  if (values.empty()) return rounding_variance(sum, shift);
  const double value = values.front();
  const Neighbours n = neighbours(std::abs(value), shift);
  const auto branch = [&](double magnitude) {
    return expected_variance(values.subspan(1), sum + std::copysign(magnitude, value), shift);
  };
  if (n.probability == 0) return branch(n.lower);
  return (1 - n.probability) * branch(n.lower) + n.probability * branch(n.upper);
}

}  // namespace

double rounding_variance(double value, int shift) {
  const double magnitude = std::abs(value);
  const Neighbours n = neighbours(magnitude, shift);
  return n.lower == n.upper ? 0 : (magnitude - n.lower) * (n.upper - magnitude);
}

ErrorBudget compare(std::span<const std::vector<float>> inputs, std::span<const float> result,
                    double scale, int shift) {
  ErrorBudget budget;
  double aggregator_variance = 0;
  const bool enumerate = inputs.size() <= kEnumeratedRanks;
  std::vector<float> element(inputs.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    double sum = 0;
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      element[rank] = inputs[rank][i];
      sum += double{element[rank]};
    }
    if (!std::isfinite(sum) || !std::isfinite(result[i])) continue;
    for (const float value : element) {
      budget.inputs += double{value} * double{value};
      budget.worker_variance += rounding_variance(value, shift);
    }
    budget.sum += sum * sum;
    const double error = double{result[i]} * scale - sum;
    budget.measured += error * error;
    if (enumerate) aggregator_variance += expected_variance(element, 0, shift);
  }
  if (enumerate) budget.aggregator_variance = aggregator_variance;
  return budget;
}

}  // namespace natagg::tools
