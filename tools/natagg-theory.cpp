// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-theory [FILE...]: the figures of the natural compression paper, computed anew, and beside
// them what this library measures; with each rank's float32 gradients, on those too. Exit status:
// 0 done, 1 a file cannot be read, 2 wrong usage.
#include <cstdio>
#include <exception>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tools/error_budget.hpp"
#include "tools/theory.hpp"
#include "tools/theory_simulation.hpp"

namespace natagg::theory {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

void heading(const char* text, const char* columns = "") {
  std::printf("\n%-58s%s\n", text, columns);
}

void row(const std::string& what, double predicted) {
  std::printf("  %-54s %11.6g\n", what.c_str(), predicted);
}

void row(const std::string& what, double predicted, const Error& error) {
  std::printf("  %-54s %11.6g %11.6g %11.6g\n", what.c_str(), predicted, error.expected,
              error.measured);
}

std::string with(const char* name, int number) {
  return name + std::to_string(number);
}

void natural() {
  heading("natural compression: w", "   theory   this data    measured");
  constexpr std::size_t kCount = 1 << 22;
  row("C_nat at its worst input, 4/3 2^k", kNatural, natural_of(1.0 / 3, kCount));
  row("C_nat at 1.1 2^k", natural_variance(0.1), natural_of(0.1, kCount));
  row("C_nat at 1.75 2^k", natural_variance(0.75), natural_of(0.75, kCount));
  row("C_nat at 2^k", natural_variance(0), natural_of(0, kCount));
  row("C_nat, root of w", std::sqrt(kNatural));
  for (int bits = 1; bits <= 3; ++bits) {
    row(with("C_nat with more mantissa bits: ", bits), natural_with_mantissa(bits));
  }
  row("C_nat after C_nat of a sum", compose(kNatural, kNatural));
  row("C_nat after w = 1", compose(kNatural, 1));
}

void sizes() {
  heading("bytes", "times less");
  row("float32 in 9 bits: sign and exponent", 32.0 / 9);
  row("float64 in 12 bits: sign and exponent", 64.0 / 12);
  row("float64 in 11 bits (the paper's 5.82)", 64.0 / 11);
  row("float32 in natagg's 8 bits", 32.0 / 8);
  row("float64 in natagg's 8 bits", 64.0 / 8);
  row("TopK of 32-bit indices: values of 8 bits over 32", (32.0 + 8) / (32 + 32));
}

void dithering() {
  constexpr int kDimension = 1000;
  constexpr int kTrials = 200;
  const std::vector<double> x = normal_vector(kDimension);
  heading("other compressors: w, d = 1000", "   theory   this data    measured");
  row("S_q, q = d/10", sparsification(kDimension, 100), sparsification_of(x, 100, kTrials));
  for (const int s : {4, 8}) {
    const int levels = 1 << (s - 1);
    row(with("D_nat, p = 2, s = ", s), natural_dithering(kDimension, s, 2),
        dithering_of(x, natural_levels(s), kTrials));
    row(with("D_sta, p = 2, levels ", levels), standard_dithering(kDimension, levels, 2),
        dithering_of(x, standard_levels(levels), kTrials));
  }
  row("D_sta, p infinite, levels 1 (TernGrad)", standard_dithering(kDimension, 1, kInfinite));
}

void speed_ups() {
  constexpr double kD = 1e6;
  constexpr double kQ = kD / 10;
  const double index = std::log2(kD);
  const auto range = [](const char* what, double bits, double most_iterations,
                        double least_iterations) {
    std::printf("  %-54s %11.3f %11.3f\n", what, speed_up(kD, bits, most_iterations),
                speed_up(kD, bits, least_iterations));
  };
  heading("speed-up over float32 (Table 1), d = 1e6, q = d/10", "    from          to");
  range("C_nat", 9 * kD, 1 + kNatural, 1);
  range("S_q", (33 + index) * kQ, 1 + sparsification(kD, kQ), 1);
  range("C_nat after S_q", (10 + index) * kQ, 1 + compose(kNatural, sparsification(kD, kQ)), 1);
  range("C_nat both ways (Model 1)", 9 * kD, (1 + kNatural) * (1 + kNatural), 1 + kNatural);
}

void iterations() {
  heading("bidirectional SGD: factors of", "  sigma^2      zeta^2        beta");
  const auto factors = [](const char* what, double worker, double master, int n) {
    const Bidirectional b = bidirectional(worker, master, n);
    std::printf("  %-54s %11.6g %11.6g %11.6g\n", (what + std::to_string(n)).c_str(), b.noise,
                b.spread, b.beta);
  };
  for (const int n : {1, 4, 8, 64}) {
    factors("no compression, n = ", 0, 0, n);
    factors("C_nat at the workers, n = ", kNatural, 0, n);
    factors("C_nat both ways, n = ", kNatural, kNatural, n);
  }
}

std::vector<float> read(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = in.tellg();
  if (!in || bytes % 4 != 0) throw std::runtime_error(path + ": not a file of float32");
  std::vector<float> values(static_cast<std::size_t>(bytes / 4));
  in.seekg(0);
  if (!in.read(reinterpret_cast<char*>(values.data()), bytes)) {
    throw std::runtime_error(path + ": cannot be read");
  }
  return values;
}

/// Each rank's error, and the sum's over many operations.
void gradients(const std::vector<std::string>& paths) {
  constexpr int kOperations = 10;
  std::vector<std::vector<float>> inputs;
  for (const std::string& path : paths) {
    inputs.push_back(read(path));
    if (inputs.back().size() != inputs.front().size()) {
      throw std::runtime_error(path + ": has another length than " + paths.front());
    }
  }
  heading("given gradients: squared error over squared norm", "  at most   this data    measured");
  for (std::uint16_t rank = 0; rank < inputs.size(); ++rank) {
    row(with("C_nat of rank ", rank), kNatural, natural_of(inputs[rank], rank, 5 * kOperations));
  }
  tools::ErrorBudget budget;
  double measured = 0;
  for (int operation = 0; operation < kOperations; ++operation) {
    const auto sum = all_reduce(inputs, static_cast<std::uint32_t>(operation));
    budget = tools::compare(inputs, sum, 1, 0);
    measured += budget.measured / kOperations;
  }
  const double expected = budget.worker_variance + budget.aggregator_variance.value_or(NAN);
  row("sum by workers and aggregator", budget.bound() / budget.sum,
      {.measured = measured / budget.sum, .expected = expected / budget.sum});
}

}  // namespace
}  // namespace natagg::theory

int main(int argc, char** argv) {
  using namespace natagg::theory;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front().starts_with('-')) {
    std::fputs(
        "usage: natagg-theory [FILE...]\n"
        "The natural compression paper's figures beside measurements; each FILE is one rank's\n"
        "gradients as float32.\n",
        arguments.front() == "--help" ? stdout : stderr);
    return arguments.front() == "--help" ? 0 : 2;
  }
  try {
    natural();
    sizes();
    dithering();
    speed_ups();
    iterations();
    if (!arguments.empty()) gradients(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "natagg-theory: %s\n", error.what());
    return 1;
  }
}
