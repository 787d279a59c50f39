// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Signals: whose threads handle them, and that they change nothing else.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "support/loopback_aggregator.hpp"
#include "support/reference.hpp"
#include "worker_api/support.hpp"
#include "worker_api/threads.hpp"

namespace natagg::testing {
namespace {

std::atomic<std::uint64_t> handled = 0;
std::atomic<std::uint64_t> handled_by_workers = 0;

void count_signal(int) {
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  ++handled;
  if (std::strcmp(name.data(), "natagg-worker") == 0) ++handled_by_workers;
}

/// Counts a signal while it exists; system calls that it interrupts are not restarted.
class Counted {
 public:
  explicit Counted(int signal) : signal_(signal) {
    handled = 0;
    handled_by_workers = 0;
    struct sigaction action {};
    action.sa_handler = count_signal;
    ::sigaction(signal, &action, &earlier_);
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { ::sigaction(signal_, &earlier_, nullptr); }

 private:
  int signal_;
  struct sigaction earlier_ {};
};

/// Whether bit `signal` of a mask that thread_status() gave is set.
bool has(const std::string& mask, int signal) {
  return (std::stoull(mask, nullptr, 16) >> (signal - 1) & 1) != 0;
}

/// The one worker's thread of this process.
pid_t worker_thread() {
  const std::vector<pid_t> threads = threads_called("natagg-worker");
  EXPECT_EQ(threads.size(), 1U);
  return threads.empty() ? 0 : threads.front();
}

TEST(Signals, AreBlockedInTheWorkerThreadAllButItsOwnFaults) {
  const LoopbackAggregator aggregator(1);
  const Worker worker({.aggregators = aggregator.address()});
  const std::string mask = thread_status(worker_thread(), "SigBlk");
  ASSERT_FALSE(mask.empty());
  const std::set<int> faults{SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    // No mask has the first two, and the C library keeps some to itself.
    if (signal == SIGKILL || signal == SIGSTOP || (signal >= 32 && signal < SIGRTMIN)) continue;
    EXPECT_EQ(has(mask, signal), !faults.contains(signal)) << "signal " << signal;
  }
}

/// A signal to the process stays pending when every thread blocks it, the worker's among them.
TEST(Signals, AreLeftAloneInTheCallersThread) {
  sigset_t usr1;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &usr1, nullptr), 0);
  const LoopbackAggregator aggregator(1);  // its thread inherits the block
  ASSERT_EQ(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
  const Worker worker({.aggregators = aggregator.address()});
  sigset_t mine;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &usr1, &mine), 0);
  EXPECT_EQ(sigismember(&mine, SIGUSR1), 0);

  ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
  int signal = 0;
  EXPECT_EQ(sigwait(&usr1, &signal), 0);
  EXPECT_EQ(signal, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_UNBLOCK, &usr1, nullptr), 0);
}

TEST(Signals, InAStormDuringConnectingAndAllReducesChangeNothing) {
  constexpr std::uint64_t kSignals = 2000;
  constexpr std::size_t kLength = 20'000;
  constexpr std::size_t kCompared = 3;
  const Counted counted(SIGUSR1);
  const LoopbackAggregator aggregator(2);
  const auto inputs = gradients(2, kLength);
  std::array<std::vector<std::vector<float>>, 2> results;
  std::array<std::atomic<pid_t>, 2> callers{};
  std::atomic<bool> stop = false;
  std::thread storm([&] {
    while (!stop) {
      ::kill(::getpid(), SIGUSR1);
      for (const std::atomic<pid_t>& caller : callers) {
        if (caller != 0) ::tgkill(::getpid(), caller, SIGUSR1);
      }
      std::this_thread::yield();
    }
  });
  // Rank 0 says when it is enough, a round ahead.
  std::atomic<std::size_t> rounds = SIZE_MAX;
  on_all_ranks(2, [&](std::uint32_t rank) {
    callers[rank] = ::gettid();
    Worker worker({.aggregators = aggregator.address(), .rank = rank, .world = 2});
    for (std::size_t round = 0; round < rounds; ++round) {
      results[rank].emplace_back(kLength);
      worker.allreduce(inputs[rank], results[rank].back());
      if (rank == 0 && round + 1 >= kCompared && rounds == SIZE_MAX && handled >= kSignals) {
        rounds = round + 2;
      }
    }
    callers[rank] = 0;
  });
  stop = true;
  storm.join();
  EXPECT_GE(handled, kSignals);
  EXPECT_EQ(handled_by_workers, 0U);
  ASSERT_EQ(results[0].size(), results[1].size());
  for (std::size_t round = 0; round < results[0].size(); ++round) {
    ASSERT_EQ(bits_of(results[0][round]), bits_of(results[1][round])) << round;
  }
  for (std::uint32_t round = 0; round < kCompared; ++round) {
    const auto expected = reference::all_reduce(inputs, {.operation = round});
    EXPECT_EQ(bits_of(results[0][round]), bits_of(expected)) << round;
  }
}

TEST(Signals, AreNotCausedByAnAggregatorWhoseSocketsAreClosed) {
  const Counted counted(SIGPIPE);
  std::optional<LoopbackAggregator> aggregator(std::in_place, 1);
  std::vector<float> values(100'000, 1.0F);
  Worker worker({.aggregators = aggregator->address(),
                 .heartbeat = std::chrono::milliseconds(20),
                 .aggregator_timeout = std::chrono::milliseconds(200)});
  aggregator.reset();
  const Error error = error_of([&] { worker.allreduce(values); });
  EXPECT_EQ(error.status(), NATAGG_AGGREGATOR_LOST) << error.what();
  EXPECT_EQ(handled, 0U);
  const pid_t thread = worker_thread();
  EXPECT_FALSE(has(thread_status(thread, "SigPnd"), SIGPIPE));
  EXPECT_FALSE(has(thread_status(thread, "ShdPnd"), SIGPIPE));
}

}  // namespace
}  // namespace natagg::testing
