// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Faults drawn from a seed: crashes, restarts, pauses, clocks gone wrong, partitions, noise and
// storms on the network, at moments of a job that need not be its best.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulation/world.hpp"

namespace natagg::simulation {

struct Fault {
  enum class Kind : std::uint8_t {
    kRestart,      // aggregator `which` is away for `duration`, and has then forgotten everything
    kKill,         // it is away for good
    kPause,        // it stands still for `duration`
    kWorkerPause,  // worker `which` does
    kCrash,        // it is away for good
    kCut,          // worker `which` and aggregator `other` do not reach each other for `duration`
    kDeaf,         // the worker alone does not hear the aggregator
    kLeap,         // its clock is suddenly ahead by `duration`
    kWorkerLeap,   // the clock of worker `which` is
    kStand,        // the aggregator's clock stands for `duration`, and does not catch up
    kWorkerStand,  // the worker's does
    kNoise,        // one packet in ten is altered, for `duration`, where that is to be noticed
    kStorm,        // half of all packets are lost, others are late or doubled, for `duration`
  };

  Kind kind = Kind::kRestart;
  Time at = 0;  // after the faults' beginning
  Time duration = 0;
  std::size_t which = 0;
  std::size_t other = 0;

  bool operator==(const Fault&) const = default;
};

/// Faults that a job must survive: each is over before the next, and some aggregator always lives.
[[nodiscard]] std::vector<Fault> draw_gentle_faults(Random& random, std::size_t aggregators,
                                                    std::size_t workers);

/// Any faults at any time.
[[nodiscard]] std::vector<Fault> draw_wild_faults(Random& random, std::size_t aggregators,
                                                  std::size_t workers);

/// Drops those of aggregators and workers that are not there.
void drop_faults_of_the_absent(std::vector<Fault>& faults, std::size_t aggregators,
                               std::size_t workers);

/// At no time are all aggregators away for good, or until a later fault restarts one.
[[nodiscard]] bool some_aggregator_always_lives(const std::vector<Fault>& faults,
                                                std::size_t aggregators);

/// Has `world` suffer `faults` from now on.
void schedule(World& world, const std::vector<Fault>& faults);

/// "at 120 ms aggregator 1 restarts after 300 ms".
[[nodiscard]] std::string to_string(const Fault& fault);

}  // namespace natagg::simulation
