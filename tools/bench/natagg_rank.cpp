// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-rank-natagg: natagg.
#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "natagg/worker.hpp"
#include "proto/packet.hpp"
#include "tools/bench/rank_program.hpp"
#include "tools/reference.hpp"
#include "tools/tensor_data.hpp"

namespace natagg::bench {
namespace {

/// A tensor repeats values like a gradient's. The period is a prime, so that no two packets of it
/// look alike.
constexpr std::size_t kPeriod = 65'521;

/// A rank compares at most so many values of a tensor with the slow computation, in blocks all over
/// it that no other rank compares: together all values, up to so many a rank.
constexpr std::size_t kChecked = 1 << 18;
constexpr std::size_t kBlock = 4096;

constexpr std::size_t kEthernetBytes = 14;

class NataggReducer : public Reducer {
 public:
  explicit NataggReducer(const Options& options) : options_(options), worker_(options) {
    for (std::uint32_t rank = 0; rank < options.world; ++rank) {
      periods_.push_back(tools::generate_tensor(tools::DataType::kFloat32, 1, rank, kPeriod));
      share_zeros(periods_.front().values<float>(), periods_.back().values<float>());
    }
  }

  [[nodiscard]] std::uint32_t rank() const override { return options_.rank; }
  [[nodiscard]] std::uint32_t world() const override { return options_.world; }
  [[nodiscard]] std::uint64_t longest_row() const override { return 1000; }

  void prepare(std::span<const TensorValues> tensors) override { requests_.resize(tensors.size()); }

  void fill(TensorValues tensor, std::size_t index) override {
    copy_values(options_.rank, first_of(index), tensor);
  }

  void reduce(std::span<const TensorValues> tensors) override {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      requests_[i] = worker_.allreduce_async(tensors[i], Reduction::kAverage);
    }
    for (const Request& request : requests_) request.wait();
  }

  void check(TensorValues tensor, std::size_t index) override {
    const std::size_t blocks = (tensor.size() + kBlock - 1) / kBlock;
    const std::size_t most = kChecked / kBlock;
    const std::size_t stride = std::max<std::size_t>((blocks + most - 1) / most, options_.world);
    for (std::size_t block = options_.rank; block < blocks; block += stride) {
      const std::size_t first = block * kBlock;
      check_block(tensor.subspan(first, std::min(kBlock, tensor.size() - first)), index, first);
    }
    checksum_ = std::transform_reduce(
        tensor.begin(), tensor.end(), checksum_,
        [](std::uint64_t sum, std::uint64_t bits) { return (sum ^ bits) * 0x100'0000'01B3; },
        [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; });
  }

  void report(tools::JsonObject& json) const override {
    const natagg_statistics s = worker_.statistics();
    json.add("checksum", checksum_);
    json.add("data_packets", s.data_packets);
    json.add("retransmissions", s.retransmissions);
    json.add("result_packets", s.result_packets);
    json.add("duplicate_results", s.duplicate_results);
    json.add("multicast_results", s.multicast_results);
    json.add("kernel_drops", s.kernel_drops);
    json.add("send_failures", s.send_failures);
    json.add("gso_packets", s.gso_packets);
    json.add("gro_packets", s.gro_packets);
    json.add("values_per_packet", s.values_per_packet);
    json.add("frame_bytes",
             kEthernetBytes + proto::kIpUdpBytes + sizeof(proto::Header) + s.values_per_packet);
    json.add("window", s.window);
    json.add("shards", s.shards);
    json.add("mtu", s.mtu);
    json.add("packets_in_flight", s.packets_in_flight);
    json.add("round_trip_ns", s.round_trip_ns);
  }

 private:
  /// Where the first rank has a zero, all have: else averages, which the next operation of a row is
  /// about, would have none.
  static void share_zeros(std::span<const float> first, std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (first[i] == 0) values[i] = 0;
    }
  }

  /// Tensors begin at different places of the period.
  static std::size_t first_of(std::size_t index) { return index * 1009; }

  void copy_values(std::uint32_t rank, std::size_t from, std::span<float> to) const {
    const std::span<const float> period = periods_[rank].values<float>();
    while (!to.empty()) {
      const std::size_t offset = from % kPeriod;
      const std::size_t part = std::min(to.size(), kPeriod - offset);
      std::copy_n(period.begin() + static_cast<std::ptrdiff_t>(offset), part, to.begin());
      to = to.subspan(part);
      from += part;
    }
  }

  void check_block(std::span<const float> result, std::size_t index, std::size_t first) const {
    std::vector<tools::Tensor> inputs;
    for (std::uint32_t rank = 0; rank < options_.world; ++rank) {
      inputs.emplace_back(tools::DataType::kFloat32, result.size());
      copy_values(rank, first_of(index) + first, inputs.back().values<float>());
    }
    // Of the job's first operations, one a tensor.
    const tools::Tensor expected =
        tools::reference_allreduce(inputs, {.seed = options_.seed,
                                            .operation = static_cast<std::uint32_t>(index),
                                            .reduction = proto::Reduction::kAverage,
                                            .first = first});
    const std::span<const float> values = expected.values<float>();
    const auto [wrong, right] = std::ranges::mismatch(result, values, [](float a, float b) {
      return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    });
    if (wrong == result.end()) return;
    throw std::runtime_error(
        "check failed: tensor " + std::to_string(index) + " value " +
        std::to_string(first + static_cast<std::size_t>(wrong - result.begin())) + " is " +
        std::to_string(*wrong) + ", and " + std::to_string(*right) + " by definition");
  }

  Options options_;
  Worker worker_;
  std::vector<tools::Tensor> periods_;  // of each rank
  std::vector<Request> requests_;
  std::uint64_t checksum_ = 0xCBF2'9CE4'8422'2325;  // of the first operation's results
};

}  // namespace
}  // namespace natagg::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  natagg::Options worker{.seed = 1};
  worker.connect_timeout = std::chrono::seconds(30);
  worker.operation_timeout = std::chrono::seconds(300);
  bool no_gso = false;
  bool no_multicast = false;
  std::uint32_t busy_poll = 0;
  po::options_description own("natagg");
  own.add_options()  //
      ("aggregators", po::value(&worker.aggregators)->required(), "the pool")(
          "busy-poll", po::value(&busy_poll), "us to look for packets before sleeping")(
          "io-threads", po::value(&worker.io_threads), "that divide the shards")(
          "local", po::value(&worker.local), "address of this rank")(
          "no-gso", po::bool_switch(&no_gso), "send and receive every packet by itself")(
          "no-multicast", po::bool_switch(&no_multicast), "receive every result by unicast")(
          "rank", po::value(&worker.rank)->required(), "of this process")(
          "transport", po::value(&worker.transport), "udp, memif:path,id=n or ethdev:device")(
          "values", po::value(&worker.values_per_packet),
          "a packet; 0: the most that the path carries")(
          "window", po::value(&worker.window)->default_value(worker.window),
          "chunks under way per shard")("world", po::value(&worker.world)->required(),
                                        "number of ranks");
  return natagg::bench::run_rank(argc, argv, own, [&](const natagg::bench::RankOptions&) {
    worker.gso = !no_gso;
    worker.multicast = !no_multicast;
    worker.busy_poll = decltype(worker.busy_poll)(busy_poll);
    return std::make_unique<natagg::bench::NataggReducer>(worker);
  });
}
