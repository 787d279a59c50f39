// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "report.hpp"

#include <cstdio>

namespace natagg::statistics {
namespace {

std::string number(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

}  // namespace

Report::Report() {
  std::printf("%-52s %13s  %-26s %s\n", "what", "values", "measured", "allowed");
}

void Report::row(std::string_view what, std::uint64_t values, const std::string& measured,
                 const std::string& allowed, bool passed) {
  std::printf("%-52.*s %13llu  %-26s %s%s\n", static_cast<int>(what.size()), what.data(),
              static_cast<unsigned long long>(values), measured.c_str(), allowed.c_str(),
              passed ? "" : "  FAILED");
  std::fflush(stdout);
  passed_ &= passed;
  values_ += values;
}

void Report::deviation(std::string_view what, std::uint64_t values, const Worst& worst,
                       std::string_view where) {
  row(what, values,
      number("%+.2f s.e.", worst.deviation) + " (" + std::string(where) + ' ' +
          std::to_string(worst.place) + ')',
      "5 s.e.", std::fabs(worst.deviation) <= kMostStandardErrors);
}

void Report::within(std::string_view what, std::uint64_t values, double measured, double expected,
                    double tolerance) {
  row(what, values, number("%.7f", measured),
      number("%.7f", expected) + " +- " + number("%.2g", tolerance),
      std::fabs(measured - expected) <= tolerance);
}

void Report::none(std::string_view what, std::uint64_t values, std::uint64_t happened) {
  row(what, values, std::to_string(happened), "0", happened == 0);
}

}  // namespace natagg::statistics
