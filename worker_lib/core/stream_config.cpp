// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/stream_config.hpp"

#include <bit>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace natagg::worker {
namespace {

constexpr Time kMillisecond = 1'000'000;

void check(bool in_range, const char* field, const std::string& problem) {
  if (!in_range) throw std::invalid_argument(std::string(field) + " " + problem);
}

}  // namespace

void validate(const StreamConfig& config) {
  check(!config.aggregators.empty(), "aggregators", "must name at least one");
  check(config.world >= 1, "world", "must be at least 1");
  check(config.rank < config.world, "rank",
        "is " + std::to_string(config.rank) + ", must be below the world size " +
            std::to_string(config.world));
  check(std::abs(config.shift) <= nat8::kMaxShift, "shift",
        "is " + std::to_string(config.shift) + ", must be -64 to 64");
  check(config.instance != 0, "instance", "must not be 0");
  check(proto::values_for_mtu(config.mtu) != 0, "mtu",
        "is " + std::to_string(config.mtu) + ", must be at least 220");
  check(config.values % proto::kValuesMultiple == 0 && config.values <= proto::kMaxValues, "values",
        "is " + std::to_string(config.values) + ", must be a multiple of 128 up to 8832");
  check(std::has_single_bit(config.window) && config.window <= proto::kMaxWindow, "window",
        "is " + std::to_string(config.window) + ", must be a power of two up to 32768");
  check(config.in_flight >= 1, "in_flight", "must be at least 1");
  check(config.lane.index < config.lane.count, "lane",
        "is " + std::to_string(config.lane.index) + ", must be below the number of lanes " +
            std::to_string(config.lane.count));
  if (config.straggler_deadline != 0) {
    check(config.straggler_deadline >= kMillisecond &&
              config.straggler_deadline <= 0xFFFF * kMillisecond &&
              config.straggler_deadline % kMillisecond == 0,
          "straggler_deadline", "must be 1 to 65,535 whole milliseconds");
    check(config.world <= proto::kMaxPartialWorld, "world",
          "is " + std::to_string(config.world) +
              ", a job with partial results has at most 512 ranks");
    check(config.quorum <= config.world, "quorum",
          "is " + std::to_string(config.quorum) + ", must be at most the world size " +
              std::to_string(config.world));
  }
  check(config.min_rto > 0 && config.max_rto >= config.min_rto, "min_rto",
        "must be positive and at most max_rto");
}

}  // namespace natagg::worker
