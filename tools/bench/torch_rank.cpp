// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-rank-torch: PyTorch's process group over Gloo, which is what torch.distributed
// calls, without Python's part of the time. PyTorch chooses Gloo's algorithm.
#include <ATen/ops/from_blob.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/exact_values.hpp"
#include "tools/bench/rank_program.hpp"

namespace natagg::bench {
namespace {

using c10d::ProcessGroupGloo;
using Work =
    decltype(std::declval<ProcessGroupGloo&>().allreduce(std::declval<std::vector<at::Tensor>&>()));

struct TorchOptions {
  std::string store;  // file where the ranks find each other
  int rank = 0;
  int world = 1;
};

c10::intrusive_ptr<ProcessGroupGloo> connect(const TorchOptions& options,
                                             const std::string& interface) {
  auto settings = ProcessGroupGloo::Options::create(std::chrono::minutes(5));
  settings->devices = {ProcessGroupGloo::createDeviceForInterface(interface)};
  const auto store = c10::make_intrusive<c10d::FileStore>(options.store, options.world);
  return c10::make_intrusive<ProcessGroupGloo>(store, options.rank, options.world, settings);
}

/// In place. Several tensors are handed over together, as DistributedDataParallel does.
class TorchReducer : public Reducer {
 public:
  TorchReducer(const TorchOptions& options, const RankOptions& rank_options)
      : group_(connect(options, rank_options.interface)) {}

  [[nodiscard]] std::uint32_t rank() const override {
    return static_cast<std::uint32_t>(group_->getRank());
  }
  [[nodiscard]] std::uint32_t world() const override {
    return static_cast<std::uint32_t>(group_->getSize());
  }
  [[nodiscard]] std::uint64_t longest_row() const override { return longest_exact_row(world()); }

  void prepare(std::span<const TensorValues> tensors) override {
    for (TensorValues tensor : tensors) {
      const auto count = static_cast<std::int64_t>(tensor.size());
      tensors_.push_back({at::from_blob(tensor.data(), {count}, at::kFloat)});
    }
    works_.reserve(tensors.size());
  }

  void fill(TensorValues tensor, std::size_t index) override { fill_exact(tensor, index, rank()); }

  void reduce(std::span<const TensorValues>) override {
    for (std::vector<at::Tensor>& tensor : tensors_) works_.push_back(group_->allreduce(tensor));
    for (const Work& work : works_) work->wait();
    works_.clear();
  }

  void check(TensorValues tensor, std::size_t index) override {
    check_exact(tensor, index, world());
  }

 private:
  c10::intrusive_ptr<ProcessGroupGloo> group_;
  std::vector<std::vector<at::Tensor>> tensors_;  // PyTorch takes a list; each is of one
  std::vector<Work> works_;
};

}  // namespace
}  // namespace natagg::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  natagg::bench::TorchOptions torch;
  po::options_description own("PyTorch");
  own.add_options()  //
      ("rank", po::value(&torch.rank)->required(), "of this process")(
          "store", po::value(&torch.store)->required(), "file where the ranks find each other")(
          "world", po::value(&torch.world)->required(), "number of ranks");
  return natagg::bench::run_rank(argc, argv, own, [&](const natagg::bench::RankOptions& options) {
    return std::make_unique<natagg::bench::TorchReducer>(torch, options);
  });
}
