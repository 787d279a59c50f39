// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// All lcores together: makes them from the options and the ports, and runs them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/io/lcore.hpp"
#include "aggregator/io/ports.hpp"
#include "aggregator/options.hpp"
#include "aggregator/report.hpp"

namespace natagg::aggregator::io {

class Datapath {
 public:
  /// One shard for each of EAL's `lcores`; `keys` null: no job has one. Throws when options and
  /// ports do not fit.
  Datapath(const Options& options, const Ports& ports, unsigned lcores,
           std::shared_ptr<const proto::JobKeys> keys);
  ~Datapath();
  Datapath(const Datapath&) = delete;
  Datapath& operator=(const Datapath&) = delete;

  /// Starts all lcores but the main one.
  void start();
  /// Runs the main lcore's shard, and returns when all lcores have stopped.
  void run();
  /// Any thread.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  void announce() { launches_.front().lcore->announce(); }

  /// "10.0.0.1:4790-4791, 2 shards, net_af_packet0 mtu 1500, 1408 values a packet, ...".
  [[nodiscard]] std::string ready_text() const;
  [[nodiscard]] std::vector<CounterRow> counters() const;

 private:
  struct Launch {
    unsigned id;  // EAL's number of the lcore
    std::unique_ptr<Lcore> lcore;
    const std::atomic<bool>* stop;
  };
  static int run_lcore(void* launch);
  [[nodiscard]] std::string describe(const Options& options, const ShardConfig& shard) const;

  const Ports& ports_;
  std::string ready_text_;
  std::vector<Launch> launches_;  // the shard of each is its place here
  std::atomic<bool> stop_ = false;
};

}  // namespace natagg::aggregator::io
