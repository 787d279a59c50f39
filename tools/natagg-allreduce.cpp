// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// natagg-allreduce: one rank of an all-reduce from the command line. Exit status: 0 done, 1 an
// operation, the connection or the check failed, 2 wrong usage.
#include <boost/program_options.hpp>
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <optional>

#include "tools/allreduce_options.hpp"
#include "tools/allreduce_run.hpp"
#include "tools/allreduce_summary.hpp"
#include "tools/interrupt.hpp"
#include "tools/tensor_data.hpp"

namespace natagg::tools {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

/// The worker, where the thread that handles signals can end it.
class Connection {
 public:
  Worker& connect(const Options& options) {
    Worker worker(options);
    const std::lock_guard lock(mutex_);
    return worker_.emplace(std::move(worker));
  }

  /// Operations end with NATAGG_CLOSED. While connecting there is nothing to end in order: the
  /// aggregators forget a rank that falls silent.
  void interrupt() {
    const std::lock_guard lock(mutex_);
    if (worker_) return worker_->shutdown();
    std::cerr << "natagg-allreduce: interrupted while connecting" << std::endl;
    std::_Exit(kFailed);
  }

  [[nodiscard]] std::optional<Worker>& worker() { return worker_; }

 private:
  std::mutex mutex_;
  std::optional<Worker> worker_;
};

void allreduce(const AllreduceOptions& options, Connection& connection, AllreduceSummary& summary) {
  const Tensor input = load_input(options);
  const auto check_inputs = load_check_inputs(options, input.size());
  summary.count = input.size();
  const auto start = std::chrono::steady_clock::now();
  Worker& worker = connection.connect(options.worker);
  summary.connect_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  run_allreduce(worker, options, input, check_inputs, summary.outcome);
  if (!options.output.empty()) write_tensor(options.output, summary.outcome.result);
}

void print(const AllreduceOptions& options, const AllreduceSummary& summary) {
  if (!summary.error.empty()) std::cerr << "natagg-allreduce: " << summary.error << std::endl;
  (options.json ? std::cerr : std::cout) << to_text(options, summary) << std::endl;
  if (options.json) std::cout << to_json(options, summary) << std::endl;
}

int run(const AllreduceOptions& options) {
  Connection connection;
  const Interrupt interrupt([&] { connection.interrupt(); });
  AllreduceSummary summary;
  try {
    allreduce(options, connection, summary);
  } catch (const Error& error) {
    summary.status = error.status();
    summary.rank_at_fault = error.rank();
    summary.error = error.what();
  } catch (const std::exception& error) {
    summary.error = error.what();
  }
  if (connection.worker()) summary.statistics = connection.worker()->statistics();
  print(options, summary);
  return summary.error.empty() ? kDone : kFailed;
}

}  // namespace
}  // namespace natagg::tools

int main(int argc, char** argv) {
  using namespace natagg::tools;
  try {
    const std::optional<AllreduceOptions> options = parse_allreduce_options(argc, argv);
    return options ? run(*options) : kDone;
  } catch (const boost::program_options::error& error) {
    std::cerr << "natagg-allreduce: " << error.what() << "; --help lists the options\n";
    return kUsage;
  }
}
