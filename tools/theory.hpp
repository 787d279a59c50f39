// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The formulas of "Natural Compression for Distributed Deep Learning" (arXiv 1905.10988).
//
// A random C is in B(w) when E C(x) = x and E||C(x) - x||^2 <= w ||x||^2.
#pragma once

#include <algorithm>
#include <cmath>

namespace natagg::theory {

/// Of natural compression, reached at 4/3 of a power of two.
inline constexpr double kNatural = 1.0 / 8;

/// Natural compression of the values 2^k (1 + f), relative to their square.
[[nodiscard]] constexpr double natural_variance(double f) {
  return f * (1 - f) / ((1 + f) * (1 + f));
}

/// C_nat that keeps `bits` more bits of the mantissa.
[[nodiscard]] inline double natural_with_mantissa(int bits) {
  return std::ldexp(1.0, -2 * bits) / (4 * (1 + std::ldexp(1.0, -bits)));
}

/// C1 in B(w1) after or before C2 in B(w2), independent.
[[nodiscard]] constexpr double compose(double w1, double w2) {
  return w1 * w2 + w1 + w2;
}

/// q of d values, chosen at random and multiplied by d/q.
[[nodiscard]] constexpr double sparsification(double d, double q) {
  return d / q - 1;
}

/// Levels 0, 1/u, ..., 1 of the p-norm. p = 2 is QSGD, p infinite with u = 1 TernGrad.
[[nodiscard]] inline double standard_dithering(double d, double levels, double p) {
  const double term = std::pow(d, 1 / std::min(p, 2.0)) / levels;
  return term * std::min(1.0, term);
}

/// Levels 0, 2^(1-s), ..., 1/2, 1 of the p-norm.
[[nodiscard]] inline double natural_dithering(double d, int s, double p) {
  return kNatural + standard_dithering(d, std::ldexp(1.0, s - 1), p);
}

/// How many times less than float32 a worker must send, when iterations grow by `iterations`.
[[nodiscard]] constexpr double speed_up(double d, double bits, double iterations) {
  return 32 * d / bits / iterations;
}

/// Bidirectional SGD: T = 2 L (f0 - f*) (alpha + eps beta) / eps^2 iterations reach accuracy eps,
/// with alpha = `noise` sigma^2 + `spread` zeta^2.
struct Bidirectional {
  double noise;
  double spread;
  double beta;
};

[[nodiscard]] constexpr Bidirectional bidirectional(double worker, double master, double n) {
  return {.noise = (master + 1) * (worker + 1) / n,
          .spread = (master + 1) * worker / n,
          .beta = 1 + master + (master + 1) * worker / n};
}

}  // namespace natagg::theory
