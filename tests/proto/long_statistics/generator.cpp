// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The random fractions: uniform, and uncorrelated between places, operations, ranks, the
// aggregator, jobs and draws.

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "proto/kernels.hpp"
#include "report.hpp"

namespace natagg::statistics {
namespace {

using proto::RoundingKey;

constexpr std::uint64_t kSeed = 0x6E61'7461'6767'0003;
constexpr std::size_t kPiece = 4 * proto::kRandomGroup;

/// The upper 16 bits of R of consecutive elements, from the first of a group.
void coarse(const RoundingKey& key, std::uint64_t first, std::span<std::uint16_t> out) {
  for (std::size_t i = 0; i < out.size(); i += proto::kRandomGroup) {
    const proto::RandomGroup rows = proto::random_group(key, first + i);
    const std::size_t count = std::min<std::size_t>(proto::kRandomGroup, out.size() - i);
    for (std::size_t n = 0; n < count; ++n) {
      out[i + n] = rows[n / proto::kRandomRow][n % proto::kRandomRow];
    }
  }
}

/// Deviation of a 65,536-cell histogram's chi-square from its mean, in standard deviations.
double chi_square(const std::vector<std::uint64_t>& cells) {
  double total = 0;
  for (const std::uint64_t count : cells) total += static_cast<double>(count);
  const auto n = static_cast<double>(cells.size());
  double sum = 0;
  for (const std::uint64_t count : cells) {
    const double difference = static_cast<double>(count) - total / n;
    sum += difference * difference * n / total;
  }
  return (sum - (n - 1)) / std::sqrt(2 * (n - 1));
}

/// Of two sequences of uniform 16-bit numbers: their correlation, in standard errors.
class Correlation {
 public:
  void add(std::uint16_t a, std::uint16_t b) {
    sum_ += (int{a} * 2 - 65535) * std::int64_t{int{b} * 2 - 65535};
    ++count_;
  }
  [[nodiscard]] double standard_errors() const {
    constexpr double kVariance = (65536.0 * 65536 - 1) / 3;  // of twice a uniform number
    return static_cast<double>(sum_) / kVariance / std::sqrt(static_cast<double>(count_));
  }

 private:
  std::int64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

void uniformity(std::uint64_t values, Report& report) {
  std::vector<std::uint64_t> cells(65536);
  std::array<std::uint16_t, kPiece> numbers;
  const std::uint64_t pieces = values / kPiece + 1;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    coarse({.seed = kSeed}, piece * kPiece, numbers);
    for (const std::uint16_t number : numbers) ++cells[number];
  }
  Worst worst;
  worst.add(chi_square(cells), 65536);
  report.deviation("generator: chi-square of the upper 16 bits", pieces * kPiece, worst, "cells:");

  // A block each: an eighth as many.
  const std::uint64_t draws = values / 8 + 1;
  std::array<std::vector<std::uint64_t>, 3> fine;
  fine.fill(std::vector<std::uint64_t>(65536));
  for (std::uint64_t element = 0; element < draws; ++element) {
    const std::uint64_t lower = proto::random_fine({.seed = kSeed}, element);
    for (std::size_t part = 0; part < fine.size(); ++part) {
      ++fine[part][lower >> (16 * part) & 0xFFFF];
    }
  }
  Worst worst_fine;
  for (std::size_t part = 0; part < fine.size(); ++part) {
    worst_fine.add(chi_square(fine[part]), static_cast<int>(16 * part));
  }
  report.deviation("generator: chi-square of each 16 of the lower 48", draws, worst_fine,
                   "from bit");
}

/// Places up to a group apart: neighbours, a lane's next rows, the next group's.
void places(std::uint64_t values, Report& report) {
  constexpr std::size_t kMostApart = 2048;
  const std::uint64_t pieces = values / kPiece + 1;
  std::vector<std::uint16_t> numbers(kPiece + kMostApart);
  constexpr std::size_t kDistances[] = {1,  2,  3,  4,   8,   15,  16,  17,   31,   32,   48,
                                        64, 80, 96, 112, 127, 128, 256, 1024, 1040, 2032, 2048};
  std::array<Correlation, std::size(kDistances)> correlations;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    coarse({.seed = kSeed + 1}, piece * kPiece, numbers);
    for (std::size_t d = 0; d < std::size(kDistances); ++d) {
      for (std::size_t i = 0; i < kPiece; ++i) {
        correlations[d].add(numbers[i], numbers[i + kDistances[d]]);
      }
    }
  }
  Worst worst;
  for (std::size_t d = 0; d < std::size(kDistances); ++d) {
    worst.add(correlations[d].standard_errors(), static_cast<int>(kDistances[d]));
  }
  report.deviation("generator: correlation of places", pieces * kPiece, worst, "apart by");
}

/// Every pair of streams that one job or two could confuse.
void streams(std::uint64_t values, Report& report) {
  std::vector<RoundingKey> keys;
  for (std::uint16_t rank = 0; rank < 4; ++rank) keys.push_back({.seed = 1, .who = rank});
  keys.push_back({.seed = 1, .who = 0xFFFF});
  for (const std::uint32_t operation : {1U, 2U, 0xFFFF'FFFFU}) {
    keys.push_back({.seed = 1, .operation = operation});
  }
  keys.push_back({.seed = 2});
  keys.push_back({.seed = std::uint64_t{1} << 32 | 1});
  const std::size_t n = keys.size();
  const std::uint64_t pieces = values / (n * kPiece) + 1;
  std::vector<std::vector<std::uint16_t>> numbers(n, std::vector<std::uint16_t>(kPiece));
  std::vector<Correlation> correlations(n * n);
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    for (std::size_t a = 0; a < n; ++a) coarse(keys[a], piece * kPiece, numbers[a]);
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        for (std::size_t i = 0; i < kPiece; ++i) {
          correlations[a * n + b].add(numbers[a][i], numbers[b][i]);
        }
      }
    }
  }
  Worst worst;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      worst.add(correlations[a * n + b].standard_errors(), static_cast<int>(a * n + b));
    }
  }
  report.deviation("generator: correlation of ranks, operations, jobs", pieces * kPiece * n, worst,
                   "pair");
}

void draws(std::uint64_t values, Report& report) {
  const RoundingKey key{.seed = kSeed + 2, .operation = 3, .who = 1};
  std::array<std::uint16_t, kPiece> numbers;
  std::array<Correlation, 3> correlations;
  const std::uint64_t pieces = values / kPiece + 1;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    coarse(key, piece * kPiece, numbers);
    for (std::size_t i = 0; i < kPiece; ++i) {
      const std::uint64_t lower = proto::random_fine(key, piece * kPiece + i);
      for (std::size_t part = 0; part < 3; ++part) {
        correlations[part].add(numbers[i], static_cast<std::uint16_t>(lower >> (16 * part)));
      }
    }
  }
  Worst worst;
  for (std::size_t part = 0; part < 3; ++part) {
    worst.add(correlations[part].standard_errors(), static_cast<int>(16 * part));
  }
  report.deviation("generator: correlation of upper and lower bits", pieces * kPiece, worst,
                   "from bit");
}

}  // namespace

void generator(std::uint64_t values, Report& report) {
  uniformity(values / 10 * 5, report);
  places(values / 10 * 2, report);
  streams(values / 10 * 2, report);
  draws(values / 10, report);
}

}  // namespace natagg::statistics
