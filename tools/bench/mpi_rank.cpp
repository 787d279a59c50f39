// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-bench-rank-mpi: MPI_Allreduce. mpirun says who the ranks are and how they talk.
#include <mpi.h>

#include <string>

#include "tools/bench/exact_values.hpp"
#include "tools/bench/rank_program.hpp"

namespace natagg::bench {
namespace {

class MpiReducer : public Reducer {
 public:
  MpiReducer() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &world_);
  }

  [[nodiscard]] std::uint32_t rank() const override { return static_cast<std::uint32_t>(rank_); }
  [[nodiscard]] std::uint32_t world() const override { return static_cast<std::uint32_t>(world_); }
  [[nodiscard]] std::uint64_t longest_row() const override { return longest_exact_row(world()); }

  void fill(TensorValues tensor, std::size_t index) override { fill_exact(tensor, index, rank()); }

  void reduce(std::span<const TensorValues> tensors) override {
    for (TensorValues tensor : tensors) {
      MPI_Allreduce(MPI_IN_PLACE, tensor.data(), static_cast<int>(tensor.size()), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
    }
  }

  void check(TensorValues tensor, std::size_t index) override {
    check_exact(tensor, index, world());
  }

  void make_progress() override {
    // Open MPI does not look at its sockets each time that it is called.
    for (int i = 0; i < 32; ++i) {
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
  }

 private:
  int rank_ = 0;
  int world_ = 1;
};

}  // namespace
}  // namespace natagg::bench

int main(int argc, char** argv) {
  // An error ends the job: MPI_ERRORS_ARE_FATAL is MPI's default.
  MPI_Init(&argc, &argv);
  const int status = natagg::bench::run_rank(argc, argv, {}, [](const natagg::bench::RankOptions&) {
    return std::make_unique<natagg::bench::MpiReducer>();
  });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return status;
}
