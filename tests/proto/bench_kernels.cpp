// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-kernels: what every implementation does a second, on one core, beside what that
// core can merely copy, read and write of the same bytes in the same run. Values are verified
// against the scalar reference before anything is timed. Options are Google Benchmark's.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "proto/kernels.hpp"

namespace {

using namespace natagg;

constexpr std::size_t kPacket = 1408;                  // values; fits the first-level cache
constexpr std::size_t kMemory = std::size_t{1} << 26;  // values; far beyond the second level
constexpr int kWorkers = 8;
constexpr std::size_t kWindow = 256;  // slots

/// Inputs and outputs of every kernel, `count` values each.
struct Buffers {
  explicit Buffers(std::size_t n)
      : count(n),
        floats(n),
        bytes(n),
        slots(n),
        gaps(n),
        slot_gaps(n),
        out_bytes(n),
        out_floats(n) {
    // One block of random values, repeated: filling memory must not take longer than reading it.
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal(0, 1e-3F);
    const std::size_t block = std::min<std::size_t>(n, 1 << 20);
    for (std::size_t i = 0; i < block; ++i) {
      floats[i] = normal(random);
      bytes[i] = static_cast<std::uint8_t>((20 + random() % 24) | (random() % 2 << 7));
      slots[i] =
          static_cast<std::int64_t>(random() >> (8 + random() % 24)) * (random() % 2 == 0 ? 1 : -1);
      const bool zero = random() % 2 == 0;
      gaps[i] = zero ? 0 : floats[i];
      slot_gaps[i] = zero ? 0 : slots[i];
    }
    for (std::size_t i = block; i < n; ++i) {
      floats[i] = floats[i - block];
      bytes[i] = bytes[i - block];
      slots[i] = slots[i - block];
      gaps[i] = gaps[i - block];
      slot_gaps[i] = slot_gaps[i - block];
    }
  }

  std::size_t count;
  std::vector<float> floats;
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> slots;
  std::vector<float> gaps;  // every second one is zero, as behind rectifiers
  std::vector<std::int64_t> slot_gaps;
  std::vector<std::uint8_t> out_bytes;
  std::vector<float> out_floats;
};

using Work = std::function<void(const Kernels&, const proto::RoundingKey&, Buffers&)>;

struct Task {
  const char* name;
  bool rounds;
  std::size_t reads;   // bytes a value
  std::size_t writes;  // bytes a value
  Work work;
};

void encode(const Kernels& kernels, const proto::RoundingKey& key, Buffers& b) {
  nat8::Tally tally;
  kernels.encode_f32(b.floats.data(), b.out_bytes.data(), b.count, 0, key, 0, tally);
}

void decode(const Kernels& kernels, const proto::RoundingKey&, Buffers& b) {
  kernels.decode_f32(b.bytes.data(), b.out_floats.data(), b.count, 0, kWorkers);
}

void stream(const Kernels& kernels, const proto::RoundingKey&, Buffers& b) {
  kernels.stream_f32(b.bytes.data(), b.out_floats.data(), b.count, 0, kWorkers);
}

void scan(const Kernels& kernels, const proto::RoundingKey&, Buffers& b) {
  Scan result = kernels.scan(b.bytes.data(), b.count);
  benchmark::DoNotOptimize(result);
}

void accumulate(const Kernels& kernels, const proto::RoundingKey&, Buffers& b) {
  kernels.accumulate(b.bytes.data(), b.slots.data(), b.count);
}

void recompress(const Kernels& kernels, const proto::RoundingKey& key, Buffers& b) {
  nat8::Tally tally;
  kernels.recompress(b.slots.data(), b.out_bytes.data(), b.count, 0, key, tally);
}

void encode_gaps(const Kernels& kernels, const proto::RoundingKey& key, Buffers& b) {
  nat8::Tally tally;
  kernels.encode_f32(b.gaps.data(), b.out_bytes.data(), b.count, 0, key, 0, tally);
}

void recompress_gaps(const Kernels& kernels, const proto::RoundingKey& key, Buffers& b) {
  nat8::Tally tally;
  kernels.recompress(b.slot_gaps.data(), b.out_bytes.data(), b.count, 0, key, tally);
}

/// All that an aggregator computes for a slot: every worker's packet checked and added, and the
/// sum compressed. A value here is one of the result's.
void slot_life(const Kernels& kernels, const proto::RoundingKey& key, Buffers& b) {
  nat8::Tally tally;
  const std::size_t slots = std::min(kWindow, b.count / kPacket);
  for (std::size_t i = 0; i + kPacket <= b.count; i += kPacket) {
    std::int64_t* slot = b.slots.data() + i / kPacket % slots * kPacket;
    for (int worker = 0; worker < kWorkers; ++worker) {
      const std::size_t packet = (i + static_cast<std::size_t>(worker) * b.count / kWorkers) /
                                 kPacket % (b.count / kPacket);
      const std::uint8_t* in = b.bytes.data() + packet * kPacket;
      Scan result = kernels.scan(in, kPacket);
      benchmark::DoNotOptimize(result);
      (worker == 0 ? kernels.store : kernels.accumulate)(in, slot, kPacket);
    }
    kernels.recompress(slot, b.out_bytes.data() + i, kPacket, i, key, tally);
  }
}

const Task kTasks[] = {
    {"encode", true, 4, 1, encode},
    {"decode", false, 1, 4, decode},
    {"stream", false, 1, 4, stream},
    {"scan", false, 1, 0, scan},
    {"accumulate", false, 9, 8, accumulate},
    {"recompress", true, 8, 1, recompress},
    {"encode-0s", true, 4, 1, encode_gaps},
    {"recompress-0s", true, 8, 1, recompress_gaps},
    {"slot-life-8", true, kWorkers, 1, slot_life},
};

[[gnu::target_clones("avx512f", "avx2", "default")]] std::uint64_t read_all(const std::uint64_t* in,
                                                                            std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum |= in[i];
  return sum;
}

[[gnu::target_clones("avx512f", "avx2", "default")]] void write_all(std::uint64_t* out,
                                                                    std::size_t count,
                                                                    std::uint64_t value) {
  for (std::size_t i = 0; i < count; ++i) out[i] = value;
}

/// Everything that every implementation wrote must be what the reference writes.
bool verified(std::size_t count) {
  for (const Kernels& kernels : all_kernels()) {
    if (!kernels.supported()) continue;
    for (const auto mode : {proto::Rounding::kStochastic, proto::Rounding::kNearest}) {
      const proto::RoundingKey key{.seed = 5, .operation = 1, .who = 2, .mode = mode};
      for (const Task& task : kTasks) {
        Buffers expected(count);
        Buffers actual(count);
        task.work(*find_kernels("scalar"), key, expected);
        task.work(kernels, key, actual);
        if (actual.out_bytes != expected.out_bytes || actual.slots != expected.slots ||
            std::memcmp(actual.out_floats.data(), expected.out_floats.data(), 4 * count) != 0) {
          std::fprintf(stderr, "%s: %s differs from the reference\n", kernels.name.data(),
                       task.name);
          return false;
        }
      }
    }
  }
  return true;
}

/// Keeps each benchmark's best repetition, in values (or bytes) a second.
class BestReporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      const auto rate = run.counters.find("rate");
      double& best = best_[run.run_name.function_name];
      if (rate != run.counters.end()) best = std::max(best, rate->second.value);
    }
  }
  [[nodiscard]] double best(const std::string& name) const {
    const auto found = best_.find(name);
    return found == best_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, double> best_;
};

void add(const std::string& name, double amount, std::function<void()> work) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [amount, work = std::move(work)](benchmark::State& state) {
                                 for (auto _ : state) {
                                   work();
                                   benchmark::ClobberMemory();
                                 }
                                 state.counters["rate"] = benchmark::Counter(
                                     amount, benchmark::Counter::kIsIterationInvariantRate);
                               })
      ->Repetitions(5)
      ->MinTime(0.1);
}

std::string full_name(const Kernels& kernels, const Task& task, const char* place, bool nearest) {
  return std::string(kernels.name) + '/' + task.name + '/' + place +
         (nearest ? "/nearest" : "/stochastic");
}

void add_place(const char* place, Buffers& b) {
  const auto values = static_cast<double>(b.count);
  for (const Kernels& kernels : all_kernels()) {
    if (!kernels.supported()) continue;
    for (const Task& task : kTasks) {
      for (const bool nearest : {false, true}) {
        if (nearest && !task.rounds) continue;
        proto::RoundingKey key{
            .seed = 5,
            .operation = 1,
            .who = 2,
            .mode = nearest ? proto::Rounding::kNearest : proto::Rounding::kStochastic};
        // Whatever accumulate adds up must stay within int64.
        const bool fills = std::strcmp(task.name, "accumulate") == 0;
        add(full_name(kernels, task, place, nearest), values, [&, key, fills]() mutable {
          ++key.operation;  // or the same few values would be undecided each time, or none
          if (fills && ++b.slots[0] % 1024 == 0) {
            for (std::int64_t& slot : b.slots) slot /= 2;
          }
          task.work(kernels, key, b);
        });
      }
    }
  }
  const std::string where = place;
  const std::size_t bytes = b.count * sizeof(float);
  add("read/" + where, static_cast<double>(bytes), [&b, bytes] {
    benchmark::DoNotOptimize(
        read_all(reinterpret_cast<const std::uint64_t*>(b.floats.data()), bytes / 8));
  });
  add("write/" + where, static_cast<double>(bytes), [&b, bytes] {
    write_all(reinterpret_cast<std::uint64_t*>(b.out_floats.data()), bytes / 8, 1);
  });
  add("memcpy/" + where, static_cast<double>(bytes),
      [&b, bytes] { std::memcpy(b.out_floats.data(), b.floats.data(), bytes); });
}

void print(const BestReporter& best, const char* place) {
  const double read = best.best(std::string("read/") + place);
  const double write = best.best(std::string("write/") + place);
  const double copy = best.best(std::string("memcpy/") + place);
  std::printf("\n%s: read %.1f, write %.1f, memcpy %.1f GB/s\n", place, read / 1e9, write / 1e9,
              copy / 1e9);
  std::printf("%-8s %-13s %10s %10s %8s   %9s %9s %9s\n", "kernels", "task", "stochastic",
              "nearest", "cost", "of read", "of write", "of memcpy");
  for (const Kernels& kernels : all_kernels()) {
    for (const Task& task : kTasks) {
      const double rate = best.best(full_name(kernels, task, place, false));
      if (rate == 0) continue;
      std::printf("%-8s %-13s %7.2f G/s", kernels.name.data(), task.name, rate / 1e9);
      if (task.rounds) {
        const double nearest = best.best(full_name(kernels, task, place, true));
        std::printf(" %6.2f G/s %7.1f%%", nearest / 1e9, 100 * (nearest / rate - 1));
      } else {
        std::printf(" %10s %8s", "", "");
      }
      const auto reads = static_cast<double>(task.reads);
      const auto writes = static_cast<double>(task.writes);
      std::printf("   %9.2f %9.2f %9.2f\n", rate * reads / read, rate * writes / write,
                  rate * std::max(reads, writes) / copy);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (!verified(16 * kPacket)) return 1;
  Buffers cached(kPacket);
  Buffers memory(kMemory);
  add_place("cache", cached);
  add_place("memory", memory);
  BestReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::printf("Values are verified. G/s: 10^9 values a second on one core, the best of 5.\n");
  for (const char* place : {"cache", "memory"}) print(reporter, place);
  return 0;
}
