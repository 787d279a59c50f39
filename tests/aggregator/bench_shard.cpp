// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-shard: how fast a whole shard is, and how fast its kernels alone are that do the
// same work in the same memory. Not a test: run it alone on an idle machine.
//
// Each rank sends bursts of chunks, one rank's after the other's, as from a device's ring.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "proto/philox.hpp"
#include "support/packets.hpp"

namespace natagg::test {
namespace {

using aggregator::Peer;
using aggregator::Shard;
using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Header;
using proto::Type;

constexpr std::uint16_t kValues = 1408;  // at MTU 1500
constexpr std::uint16_t kWindow = 256;
constexpr std::uint32_t kBurst = 16;  // chunks
constexpr std::size_t kRounds = 9;
constexpr std::size_t kPacketsARound = 200'000;
constexpr std::size_t kFrameBytes = 14 + proto::kIpUdpBytes + proto::datagram_size(kValues);

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// A job whose ranks have all joined, and a burst of each rank's packets.
class Job {
 public:
  Job(std::uint16_t world, const Kernels& kernels)
      : world_(world), shard_({.max_workers = world, .kernels = &kernels}) {
    for (std::uint16_t rank = 0; rank < world; ++rank) join(rank);
    for (std::uint16_t rank = 0; rank < world; ++rank) {
      for (std::uint32_t chunk = 0; chunk < kBurst; ++chunk) {
        packets_.push_back(value_packet(header(rank), values(rank, chunk)));
      }
    }
  }

  /// The next bursts of all ranks; returns how many results came.
  std::size_t play() {
    std::size_t results = 0;
    for (std::uint16_t rank = 0; rank < world_; ++rank) {
      for (std::uint32_t chunk = 0; chunk < kBurst; ++chunk) {
        Packet& packet = packets_[rank * kBurst + chunk];
        address(packet, sequence_ + chunk);
        const auto sent = shard_.receive(packet, peer(rank), 0);
        results += sent.size();
        if (!sent.empty()) last_result_ = sent.back().body;
      }
    }
    sequence_ += kBurst;
    return results;
  }

  [[nodiscard]] const std::vector<Packet>& packets() const { return packets_; }
  [[nodiscard]] std::span<const std::uint8_t> last_result() const { return last_result_; }
  [[nodiscard]] std::uint16_t world() const { return world_; }

 private:
  static Peer peer(std::uint16_t rank) {
    return {.endpoint = {0x0A00'0002U + rank, 50000}, .link = 0x1000U + rank};
  }

  void join(std::uint16_t rank) {
    Header header = proto::make_header(Type::kJoin);
    header.rank = Be16{rank};
    proto::JoinBody body{};
    body.instance = Be64{100U + rank};
    body.world = Be16{world_};
    body.values = Be16{kValues};
    body.window = Be16{kWindow};
    body.shards = Be16{1};
    const auto sent =
        shard_.receive(control_packet(header, body, proto::datagram_size(kValues)), peer(rank), 0);
    if (sent.empty()) throw std::runtime_error("JOIN is not answered");
    const auto welcome = proto::read_body<proto::WelcomeBody>(sent.back().head);
    epoch_ = proto::read_header(sent.back().head).epoch.value();
    sequence_ = welcome.first_sequence.value();
  }

  [[nodiscard]] Header header(std::uint16_t rank) const {
    Header header = proto::make_header(Type::kData);
    header.epoch = Be32{epoch_};
    header.rank = Be16{rank};
    header.fingerprint = Be64{proto::fingerprint({.length = 1'000'000})};
    return header;
  }

  /// As of a gradient: exponents in the middle, and one zero in eight.
  static std::vector<std::uint8_t> values(std::uint16_t rank, std::uint32_t chunk) {
    std::vector<std::uint8_t> values(kValues);
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const std::uint32_t random = proto::philox4x32({i, chunk, rank, 0}, {1, 2})[0];
      const auto code = static_cast<std::uint8_t>((random & 0x80) | (10 + random / 256 % 40));
      values[i] = random % 8 == 0 ? nat8::kZero : code;
    }
    return values;
  }

  static void address(Packet& packet, std::uint32_t sequence) {
    Header header = proto::read_header(packet);
    header.sequence = Be32{sequence};
    header.slot = Be16{static_cast<std::uint16_t>(sequence % kWindow)};
    std::memcpy(packet.data(), &header, sizeof header);
  }

  std::uint16_t world_;
  Shard shard_;
  std::uint32_t epoch_ = 0;
  std::uint32_t sequence_ = 0;
  std::vector<Packet> packets_;  // kBurst of each rank
  std::span<const std::uint8_t> last_result_;
};

/// The same by the kernels alone.
class KernelsAlone {
 public:
  KernelsAlone(const Job& job, const Kernels& kernels)
      : job_(job), kernels_(kernels), sums_(kBurst * kValues), result_(kBurst * kValues) {}

  std::size_t play() {
    std::size_t results = 0;
    for (std::size_t i = 0; i < job_.packets().size(); ++i) {
      const std::span<const std::uint8_t> values = proto::payload(job_.packets()[i]);
      std::int64_t* const sums = &sums_[i % kBurst * kValues];
      scanned_ = std::max(scanned_, kernels_.scan(values.data(), values.size()).largest_code);
      (i < kBurst ? kernels_.store : kernels_.accumulate)(values.data(), sums, values.size());
      if (i + kBurst < job_.packets().size()) continue;
      ++results;
      nat8::Tally tally;
      kernels_.recompress(sums, &result_[i % kBurst * kValues], kValues, 0,
                          {.who = proto::kAggregatorRank}, tally);
    }
    return results;
  }

  [[nodiscard]] std::span<const std::uint8_t> last_result() const {
    return std::span(result_).last(kValues);
  }

 private:
  const Job& job_;
  const Kernels& kernels_;
  std::vector<std::int64_t> sums_;
  std::vector<std::uint8_t> result_;
  std::uint8_t scanned_ = 0;
};

void verify(Job& job, KernelsAlone& reference, const char* what) {
  const std::size_t results = job.play();
  if (results != kBurst || reference.play() != kBurst ||
      !std::ranges::equal(job.last_result(), reference.last_result())) {
    throw std::runtime_error(std::string("check failed: ") + what + " gives other bytes");
  }
}

/// Seconds a packet.
template <typename Player>
double time(Player& player, std::size_t packets) {
  const std::size_t plays = std::max<std::size_t>(1, kPacketsARound / packets);
  const double start = now_s();
  for (std::size_t i = 0; i < plays; ++i) player.play();
  return (now_s() - start) / static_cast<double>(plays * packets);
}

void measure(std::uint16_t world) {
  const Kernels& kernels = default_kernels();
  Job job(world, kernels);
  KernelsAlone alone(job, kernels);
  KernelsAlone scalar(job, *find_kernels("scalar"));
  verify(job, scalar, "the shard");
  verify(job, alone, "the shard");

  std::vector<double> shard_s;
  std::vector<double> alone_s;
  std::vector<double> shares;
  for (std::size_t round = 0; round < kRounds; ++round) {
    shard_s.push_back(time(job, job.packets().size()));
    alone_s.push_back(time(alone, job.packets().size()));
    shares.push_back(alone_s.back() / shard_s.back());
  }
  constexpr double kBits = 8e-9;
  std::printf("%5u %12.1f %12.1f %12.2f %12.1f %12.1f %10.2f\n", world, median(shard_s) * 1e9,
              kBits * kFrameBytes / median(shard_s), kValues / median(shard_s) * 1e-9,
              median(alone_s) * 1e9, kBits * kFrameBytes / median(alone_s), median(shares));
}

}  // namespace
}  // namespace natagg::test

int main() {
  std::printf("%u values a packet, kernels %s; medians of %zu rounds\n", natagg::test::kValues,
              std::string(natagg::default_kernels().name).c_str(), natagg::test::kRounds);
  std::printf("%5s %12s %12s %12s %12s %12s %10s\n", "ranks", "ns a packet", "Gbit/s", "Gvalues/s",
              "kernels, ns", "Gbit/s", "of it");
  constexpr std::array<std::uint16_t, 6> worlds = {2, 4, 8, 16, 32, 64};
  std::ranges::for_each(worlds, natagg::test::measure);
}
