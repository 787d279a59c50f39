// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/faults.hpp"

#include <algorithm>

namespace natagg::simulation {
namespace {

using Kind = Fault::Kind;

/// A fault and its repair fit into this.
constexpr Time kApart = 4 * kSecond;

bool of_worker(Kind kind) {
  return kind == Kind::kWorkerPause || kind == Kind::kCrash || kind == Kind::kCut ||
         kind == Kind::kDeaf || kind == Kind::kWorkerLeap || kind == Kind::kWorkerStand;
}

Fault draw(Random& random, Kind kind, Time longest, std::size_t aggregators, std::size_t workers) {
  return {.kind = kind,
          .at = 0,
          .duration = random.between(0, longest),
          .which = random.below(of_worker(kind) ? workers : aggregators),
          .other = random.below(aggregators)};
}

}  // namespace

std::vector<Fault> draw_gentle_faults(Random& random, std::size_t aggregators,
                                      std::size_t workers) {
  std::vector<Fault> faults(random.below(4) + 1);
  std::size_t living = aggregators;
  std::vector<bool> dead(aggregators);
  Time at = 0;
  for (Fault& fault : faults) {
    switch (random.below(living > 1 ? 11 : 10)) {
      case 0: fault = draw(random, Kind::kRestart, 800 * kMillisecond, aggregators, workers); break;
      case 1: fault = draw(random, Kind::kPause, 3 * kSecond, aggregators, workers); break;
      case 2:
        fault = draw(random, Kind::kWorkerPause, 1'200 * kMillisecond, aggregators, workers);
        break;
      case 3: fault = draw(random, Kind::kCut, 700 * kMillisecond, aggregators, workers); break;
      case 4: fault = draw(random, Kind::kStorm, 500 * kMillisecond, aggregators, workers); break;
      case 5: fault = draw(random, Kind::kLeap, 5 * kSecond, aggregators, workers); break;
      case 6: fault = draw(random, Kind::kWorkerLeap, 3 * kSecond, aggregators, workers); break;
      case 7: fault = draw(random, Kind::kStand, 800 * kMillisecond, aggregators, workers); break;
      case 8:
        fault = draw(random, Kind::kWorkerStand, 1'200 * kMillisecond, aggregators, workers);
        break;
      case 9: fault = draw(random, Kind::kNoise, kSecond, aggregators, workers); break;
      default:
        fault = draw(random, Kind::kKill, 0, aggregators, workers);
        if (!dead[fault.which]) --living;
        dead[fault.which] = true;
    }
    fault.at = at + random.between(0, kSecond);
    at += kApart + kSecond;
    // Who is dead may come back, but a pause is none of the dead's.
    if (fault.kind == Kind::kRestart && dead[fault.which]) {
      dead[fault.which] = false;
      ++living;
    }
  }
  return faults;
}

std::vector<Fault> draw_wild_faults(Random& random, std::size_t aggregators, std::size_t workers) {
  std::vector<Fault> faults(random.below(8) + 1);
  for (Fault& fault : faults) {
    const Kind kind =
        random.pick({Kind::kRestart, Kind::kRestart, Kind::kKill, Kind::kPause, Kind::kWorkerPause,
                     Kind::kCrash, Kind::kCut, Kind::kDeaf, Kind::kStorm, Kind::kLeap,
                     Kind::kWorkerLeap, Kind::kStand, Kind::kWorkerStand, Kind::kNoise});
    const Time longest = random.pick({50, 500, 4'000}) * kMillisecond;
    fault = draw(random, kind, longest, aggregators, workers);
    fault.at = random.between(0, 4 * kSecond);
  }
  std::ranges::sort(faults, {}, &Fault::at);
  return faults;
}

void drop_faults_of_the_absent(std::vector<Fault>& faults, std::size_t aggregators,
                               std::size_t workers) {
  std::erase_if(faults, [&](const Fault& fault) {
    const bool cuts = fault.kind == Kind::kCut || fault.kind == Kind::kDeaf;
    return fault.which >= (of_worker(fault.kind) ? workers : aggregators) ||
           (cuts && fault.other >= aggregators);
  });
}

bool some_aggregator_always_lives(const std::vector<Fault>& faults, std::size_t aggregators) {
  std::vector<bool> dead(aggregators);
  return std::ranges::all_of(faults, [&](const Fault& fault) {
    if (fault.kind == Kind::kKill) dead[fault.which] = true;
    if (fault.kind == Kind::kRestart) dead[fault.which] = false;
    return std::ranges::find(dead, false) != dead.end();
  });
}

void schedule(World& world, const std::vector<Fault>& faults) {
  std::uint32_t epoch = 0x4000'0000;
  for (const Fault& fault : faults) {
    const Time begin = world.now() + fault.at;
    const Time end = begin + fault.duration;
    const std::size_t which = fault.which;
    epoch += 0x1'0000;
    switch (fault.kind) {
      case Kind::kRestart:
        world.at(begin, [&world, which] { world.aggregator(which).vanish(); });
        world.at(end,
                 [&world, which, epoch] { world.aggregator(which).restart(world.now(), epoch); });
        break;
      case Kind::kKill:
        world.at(begin, [&world, which] { world.aggregator(which).vanish(); });
        break;
      case Kind::kPause:
        world.at(begin, [&world, which, end] { world.aggregator(which).pause(end); });
        break;
      case Kind::kWorkerPause: world.worker(which).add_pause({begin, end}); break;
      case Kind::kCrash: world.at(begin, [&world, which] { world.worker(which).vanish(); }); break;
      case Kind::kCut:
      case Kind::kDeaf: {
        const std::uint32_t rank = world.worker(which).self().address;
        const std::uint32_t aggregator = world.aggregator(fault.other).first().address;
        const bool both = fault.kind == Kind::kCut;
        world.at(begin, [&world, rank, aggregator, both] {
          world.network().cut(aggregator, rank);
          if (both) world.network().cut(rank, aggregator);
        });
        world.at(end, [&world] { world.network().heal(); });
        break;
      }
      case Kind::kLeap:
        world.at(begin, [&world, which, by = fault.duration] { world.aggregator(which).leap(by); });
        break;
      case Kind::kWorkerLeap:
        world.at(begin, [&world, which, by = fault.duration] { world.worker(which).leap(by); });
        break;
      case Kind::kStand:
        world.at(begin, [&world, which, end] { world.aggregator(which).stand(world.now(), end); });
        break;
      case Kind::kWorkerStand:
        world.at(begin, [&world, which, end] { world.worker(which).stand(world.now(), end); });
        break;
      case Kind::kNoise: {
        const NetworkConfig calm = world.network().config();
        NetworkConfig noise = calm;
        noise.corruption = 0.1;
        world.at(begin, [&world, noise] { world.network().configure(noise); });
        world.at(end, [&world, calm] { world.network().configure(calm); });
        break;
      }
      case Kind::kStorm: {
        const NetworkConfig calm = world.network().config();
        NetworkConfig storm = calm;
        storm.loss = 0.5;
        storm.duplication = storm.reordering = 0.2;
        storm.jitter = 30 * kMillisecond;
        world.at(begin, [&world, storm] { world.network().configure(storm); });
        world.at(end, [&world, calm] { world.network().configure(calm); });
      }
    }
  }
}

std::string to_string(const Fault& fault) {
  const auto milliseconds = [](Time time) { return std::to_string(time / kMillisecond) + " ms"; };
  const std::string for_so_long = " for " + milliseconds(fault.duration);
  const std::string by = " by " + milliseconds(fault.duration);
  const std::string aggregator = "aggregator " + std::to_string(fault.which);
  const std::string worker = "worker " + std::to_string(fault.which);
  const std::string other = " aggregator " + std::to_string(fault.other);
  const std::string at = "at " + milliseconds(fault.at) + ' ';
  switch (fault.kind) {
    case Kind::kRestart: return at + aggregator + " restarts after " + milliseconds(fault.duration);
    case Kind::kKill: return at + aggregator + " dies";
    case Kind::kPause: return at + aggregator + " stands still" + for_so_long;
    case Kind::kWorkerPause: return at + worker + " stands still" + for_so_long;
    case Kind::kCrash: return at + worker + " dies";
    case Kind::kCut: return at + worker + " does not reach" + other + for_so_long;
    case Kind::kDeaf: return at + worker + " does not hear" + other + for_so_long;
    case Kind::kLeap: return at + aggregator + "'s clock leaps" + by;
    case Kind::kWorkerLeap: return at + worker + "'s clock leaps" + by;
    case Kind::kStand: return at + aggregator + "'s clock stands" + for_so_long;
    case Kind::kWorkerStand: return at + worker + "'s clock stands" + for_so_long;
    case Kind::kNoise: return at + "noise" + for_so_long;
    case Kind::kStorm: return at + "a storm" + for_so_long;
  }
  return at + "nothing";
}

}  // namespace natagg::simulation
