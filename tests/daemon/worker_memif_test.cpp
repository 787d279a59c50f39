// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Workers beside the real daemon, through memory that they share with it.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/process.hpp"

namespace natagg::testing {
namespace {

/// A daemon with a net_memif for each of `workers`, and the workers' processes.
class WorkersOnMemif : public ::testing::Test {
 protected:
  static constexpr unsigned kWorkers = 3;

  [[nodiscard]] std::unique_ptr<DaemonProcess> launch_daemon(const std::string& lcores = "0") {
    ++daemons_;
    std::vector<std::string> arguments = isolated_eal(device(0), lcores);
    for (unsigned id = 1; id < kWorkers; ++id) {
      arguments.insert(arguments.end(), {"--vdev", device(id)});
    }
    arguments.insert(arguments.end(), {"--", "--address=10.0.0.1", "--idle=polite"});
    return std::make_unique<DaemonProcess>(arguments,
                                           directory_.file("daemon" + std::to_string(daemons_)));
  }

  void start_daemon(const std::string& lcores = "0") {
    daemon_ = launch_daemon(lcores);
    ASSERT_TRUE(daemon_->logged("ready:")) << daemon_->log();
  }

  void stop_daemon() {
    daemon_->signal(SIGTERM);
    EXPECT_EQ(daemon_->wait(), 0) << daemon_->log();
    EXPECT_EQ(daemon_->log().find("not given back"), std::string::npos) << daemon_->log();
  }

  void start_workers(const std::vector<std::string>& more) {
    ++rounds_;
    workers_.clear();
    for (unsigned rank = 0; rank < kWorkers; ++rank) {
      const std::string number = std::to_string(rank);
      std::vector<std::string> arguments{"--aggregators=10.0.0.1",
                                         "--world=" + std::to_string(kWorkers), "--rank=" + number,
                                         "--transport=memif:" + socket_ + ",id=" + number};
      arguments.insert(arguments.end(), more.begin(), more.end());
      workers_.push_back(std::make_unique<Process>(
          NATAGG_ALLREDUCE, arguments,
          directory_.file("worker" + number + "." + std::to_string(rounds_))));
    }
  }

  void expect_success() {
    for (const auto& worker : workers_) EXPECT_EQ(worker->wait(), 0) << worker->log();
  }

  /// Returns when the daemon has summed something since this began: workers are in the middle of
  /// their work.
  void await_results() {
    const std::uint64_t before = results();
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (results() <= before + kSome) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << daemon_->log();
    }
  }

  TemporaryDirectory directory_;
  std::string socket_ = directory_.file("memif.sock");
  std::unique_ptr<DaemonProcess> daemon_;
  std::vector<std::unique_ptr<Process>> workers_;

 private:
  [[nodiscard]] std::string device(unsigned id) const {
    const std::string number = std::to_string(id);
    return "net_memif" + number + ",id=" + number +
           ",role=server,socket-abstract=no,socket=" + socket_;
  }

  static constexpr std::uint64_t kSome = 50;

  static std::size_t reports(const std::string& log) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = log.find("counters:", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  void await_report() {
    const std::size_t before = reports(daemon_->log());
    const auto end = std::chrono::steady_clock::now() + kPatience;
    daemon_->signal(SIGUSR1);
    while (reports(daemon_->log()) == before) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << daemon_->log();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  /// What the daemon has summed. Once a second report begins, the first is whole.
  std::uint64_t results() {
    await_report();
    await_report();
    const std::string log = daemon_->log();
    constexpr std::string_view kName = "info   results ";
    const std::size_t at = log.rfind(kName, log.rfind("counters:"));
    return at == std::string::npos ? 0 : std::stoull(log.substr(at + kName.size()));
  }

  int daemons_ = 0;
  int rounds_ = 0;
};

TEST_F(WorkersOnMemif, GetTheSumThatTheDefinitionSays) {
  start_daemon();
  start_workers({"--count=100003", "--repeat=3", "--check"});
  expect_success();
  EXPECT_NE(workers_[0]->log().find("3 checked"), std::string::npos) << workers_[0]->log();
  stop_daemon();
}

TEST_F(WorkersOnMemif, HandFramesBetweenSeveralShards) {
  start_daemon("0@0,1@0");
  start_workers({"--count=100003", "--repeat=3", "--check"});
  expect_success();
  stop_daemon();
}

TEST_F(WorkersOnMemif, RecoverFromLossesOfBothEnds) {
  start_daemon();
  start_workers(
      {"--count=300000", "--repeat=2", "--check", "--transmit-loss=0.02", "--receive-loss=0.02"});
  expect_success();
  stop_daemon();
}

TEST_F(WorkersOnMemif, FailWhenOneIsKilledAndFormTheJobAgainWithTheSameDaemon) {
  start_daemon();
  constexpr int kKills = 2;
  for (int i = 0; i < kKills; ++i) {
    start_workers({"--count=2000000", "--repeat=100000"});
    await_results();
    workers_[2]->signal(SIGKILL);
    for (unsigned rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(workers_[rank]->wait(), 1) << workers_[rank]->log();
      EXPECT_NE(workers_[rank]->log().find("rank 2"), std::string::npos) << workers_[rank]->log();
    }
  }
  start_workers({"--count=10000", "--check"});
  expect_success();
  stop_daemon();
}

TEST_F(WorkersOnMemif, GoOnWithTheSameBitsWhenTheDaemonIsKilledAndStartedAnew) {
  start_daemon();
  start_workers({"--count=100000", "--repeat=30", "--check", "--aggregator-timeout=60000"});
  await_results();
  daemon_->signal(SIGKILL);
  daemon_->wait();
  start_daemon();
  expect_success();
  stop_daemon();
}

TEST_F(WorkersOnMemif, KeepTheirDaemonWhenAnotherIsStartedOnItsSocket) {
  start_daemon();
  const std::unique_ptr<DaemonProcess> other = launch_daemon();
  EXPECT_EQ(other->wait(), 1);
  EXPECT_NE(other->log().find("Address already in use"), std::string::npos) << other->log();
  start_workers({"--count=10000", "--check"});
  expect_success();
  stop_daemon();
}

}  // namespace
}  // namespace natagg::testing
