// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A child of fork() cannot use its parent's workers, and cannot harm them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/loopback_aggregator.hpp"
#include "worker_api/support.hpp"

namespace natagg::testing {
namespace {

constexpr int kGood = 77;  // no exit code by accident

/// The exit code of a child that runs `body`, which gives it; -1 when it is killed, as it is after
/// 20 seconds.
template <typename Body>
int exit_code_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(body());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

/// Calls everything; kGood, or the number of the first call that does not do what it should.
int use_all(natagg_worker* worker, natagg_request request, const std::string& message) {
  float value = 5.0F;
  natagg_request other = 9;
  const auto refused = [](natagg_status status) { return status == NATAGG_WRONG_PROCESS; };
  if (!refused(natagg_wait(worker, request, -1))) return 1;
  if (!refused(natagg_wait(worker, request, 0))) return 2;
  if (!refused(natagg_test(worker, request))) return 3;
  if (!refused(
          natagg_allreduce_async(worker, &value, &value, 1, NATAGG_FLOAT32, NATAGG_SUM, &other)) ||
      other != 0) {
    return 4;
  }
  if (!refused(natagg_allreduce(worker, &value, &value, 1, NATAGG_FLOAT32, NATAGG_SUM))) return 5;
  natagg_statistics statistics{};
  statistics.size = sizeof statistics;
  if (!refused(natagg_get_statistics(worker, &statistics))) return 6;
  std::array<char, 256> text{};
  std::int32_t rank = 5;
  if (!refused(natagg_error_message(worker, text.data(), text.size(), &rank)) || rank != -1) {
    return 7;
  }
  if (std::strncmp(text.data(), message.c_str(), message.size()) != 0) return 8;
  natagg_shutdown(worker);
  natagg_close(worker);
  return value == 5.0F ? kGood : 9;
}

TEST(Fork, LeavesTheChildNoCallOnTheWorkerAndTheParentAll) {
  const LoopbackAggregator aggregator(2);
  std::vector<std::vector<float>> values(2, std::vector<float>(100'000, 1.0F));
  std::vector<Worker> workers = connect_all(2, {.aggregators = aggregator.address()});
  const Request request = workers[0].allreduce_async(values[0]);  // rank 1 has not begun
  const std::string message = "the worker belongs to process " + std::to_string(::getpid()) + ", ";
  EXPECT_EQ(exit_code_of_child([&] { return use_all(workers[0].handle(), request.id(), message); }),
            kGood);
  // The destructors of the C++ interface, of a worker with an operation in flight and of one
  // without.
  EXPECT_EQ(exit_code_of_child([&] {
              const Error error = error_of([&] { request.wait(); });
              workers.clear();
              return error.status() == NATAGG_WRONG_PROCESS &&
                             std::string(error.what()).starts_with(message)
                         ? kGood
                         : 1;
            }),
            kGood);
  EXPECT_EQ(aggregator.received(proto::Type::kLeave), 0U);
  workers[1].allreduce(values[1]);
  request.wait();
  EXPECT_EQ(values[0], std::vector<float>(100'000, 2.0F));
  EXPECT_EQ(values[1], std::vector<float>(100'000, 2.0F));
}

/// Whatever thread of the parent holds which lock.
TEST(Fork, NeverLeavesTheChildWaitingForALock) {
  const LoopbackAggregator aggregator(1);
  Worker worker({.aggregators = aggregator.address()});
  const std::string message = "the worker belongs to process ";
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> rounds = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::vector<float> values(2000, 1.0F);
      while (!stop) {
        worker.allreduce(values);
        static_cast<void>(worker.statistics());
        ++rounds;
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    const std::uint64_t seen = rounds;
    EXPECT_EQ(exit_code_of_child([&] { return use_all(worker.handle(), 1, message); }), kGood);
    while (rounds == seen) std::this_thread::yield();  // the parent goes on
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, LetsTheChildConnectWorkersOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows no threads in a child of a process with several";
#endif
  const LoopbackAggregator aggregator(1);
  std::vector<float> values(5000, 1.0F);
  const Worker worker({.aggregators = aggregator.address()});
  EXPECT_EQ(exit_code_of_child([&] {
              Worker own({.aggregators = aggregator.address(), .job = 1});
              own.allreduce(values);
              return chunks_sent(own) == 1 && values[0] == 1.0F ? kGood : 1;
            }),
            kGood);
}

}  // namespace
}  // namespace natagg::testing
