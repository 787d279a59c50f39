// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Starts DPDK's environment abstraction layer and ends it.
#pragma once

#include <string>
#include <vector>

namespace natagg::aggregator::io {

class Eal {
 public:
  /// `arguments` follow the program's name. DPDK's log goes to spdlog from here on. Throws
  /// std::runtime_error with a remedy.
  Eal(const std::string& program, const std::vector<std::string>& arguments, void (*print_usage)());
  ~Eal();
  Eal(const Eal&) = delete;
  Eal& operator=(const Eal&) = delete;

  /// One a shard.
  [[nodiscard]] unsigned lcores() const;

  /// Leaves EAL's memory to the end of the process. Where alarms have run, rte_eal_cleanup() takes
  /// away what the interrupt thread may be looking at (seen with 22.11: SIGSEGV in
  /// rte_intr_fd_get), and there is no way to end that thread before.
  void keep_memory() { keeps_memory_ = true; }

 private:
  // EAL keeps pointers into its arguments and orders them anew.
  std::vector<std::string> words_;
  std::vector<char*> argv_;
  bool keeps_memory_ = false;
};

/// "rte_ring_create of handoff-0: Cannot allocate memory (12)": what failed, on what, and why.
/// `error` is positive, negative, or 0 for DPDK's errno.
[[nodiscard]] std::string describe_failure(const std::string& call, const std::string& object,
                                           int error = 0);

}  // namespace natagg::aggregator::io
