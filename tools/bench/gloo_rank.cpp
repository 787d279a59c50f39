// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-rank-gloo: Gloo over TCP, by one of its algorithms.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/exact_values.hpp"
#include "tools/bench/rank_program.hpp"

namespace natagg::bench {
namespace {

struct GlooOptions {
  std::string algorithm;
  std::string address;  // of this rank
  std::string store;    // directory where the ranks find each other
  int rank = 0;
  int world = 1;
};

std::shared_ptr<gloo::Context> connect(const GlooOptions& options) {
  gloo::transport::tcp::attr attributes(options.address.c_str());
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(options.store);
  auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.world);
  context->setTimeout(std::chrono::minutes(5));
  context->connectFullMesh(store, device);
  return context;
}

/// In place, as frameworks call Gloo.
class GlooReducer : public Reducer {
 public:
  GlooReducer(const GlooOptions& options, const RankOptions& rank_options)
      : context_(connect(options)), algorithm_(options.algorithm), count_(rank_options.count) {}

  [[nodiscard]] std::uint32_t rank() const override {
    return static_cast<std::uint32_t>(context_->rank);
  }
  [[nodiscard]] std::uint32_t world() const override {
    return static_cast<std::uint32_t>(context_->size);
  }
  [[nodiscard]] std::uint64_t longest_row() const override { return longest_exact_row(world()); }

  void prepare(std::span<const TensorValues> tensors) override {
    for (TensorValues tensor : tensors) {
      const std::vector<float*> memory = {tensor.data()};
      const int count = static_cast<int>(count_);
      if (algorithm_ == "halving-doubling") {
        algorithms_.push_back(
            std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, memory, count));
      } else if (algorithm_ == "ring-chunked") {
        algorithms_.push_back(
            std::make_unique<gloo::AllreduceRingChunked<float>>(context_, memory, count));
      } else {
        calls_.push_back(call(tensor, static_cast<std::uint32_t>(calls_.size())));
      }
    }
  }

  void fill(TensorValues tensor, std::size_t index) override { fill_exact(tensor, index, rank()); }

  void reduce(std::span<const TensorValues>) override {
    for (const auto& algorithm : algorithms_) algorithm->run();
    for (gloo::AllreduceOptions& options : calls_) gloo::allreduce(options);
  }

  void check(TensorValues tensor, std::size_t index) override {
    check_exact(tensor, index, world());
  }

 private:
  gloo::AllreduceOptions call(TensorValues tensor, std::uint32_t tag) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm_ == "ring" ? gloo::AllreduceOptions::Algorithm::RING
                                              : gloo::AllreduceOptions::Algorithm::BCUBE);
    options.setOutput(tensor.data(), tensor.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(tag);
    return options;
  }

  std::shared_ptr<gloo::Context> context_;
  std::string algorithm_;
  std::size_t count_;
  std::vector<std::unique_ptr<gloo::Algorithm>> algorithms_;  // of one tensor each
  std::vector<gloo::AllreduceOptions> calls_;
};

}  // namespace
}  // namespace natagg::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  natagg::bench::GlooOptions gloo;
  po::options_description own("Gloo");
  own.add_options()  //
      ("address", po::value(&gloo.address)->required(), "of this rank")(
          "algorithm", po::value(&gloo.algorithm)->required(),
          "ring, ring-chunked, halving-doubling or bcube")(
          "rank", po::value(&gloo.rank)->required(), "of this process")(
          "store", po::value(&gloo.store)->required(), "directory where the ranks find each other")(
          "world", po::value(&gloo.world)->required(), "number of ranks");
  return natagg::bench::run_rank(argc, argv, own, [&](const natagg::bench::RankOptions& options) {
    return std::make_unique<natagg::bench::GlooReducer>(gloo, options);
  });
}
