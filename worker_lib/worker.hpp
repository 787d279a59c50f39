// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A worker is a rank's part of a job: one lane, or several that divide the pool's shards. Callers'
// threads and the lanes' meet in Requests.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker_lib/lane.hpp"
#include "worker_lib/options.hpp"
#include "worker_lib/requests.hpp"
#include "worker_lib/transport/recording.hpp"
#include "worker_lib/worker_stats.hpp"

namespace natagg::worker {

class Worker {
 public:
  /// A call that another thread's destruction of the worker waits for.
  class Call {
   public:
    explicit Call(Worker& worker) : requests_(worker.requests_) { requests_.begin_call(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() { requests_.end_call(); }

   private:
    Requests& requests_;
  };

  /// Connects; blocks until that has succeeded or failed. Throws Error.
  explicit Worker(const WorkerConfig& config);

  /// shutdown(), then waits for the threads and for every Call.
  ~Worker();

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The process that connected. After fork() the child has no worker thread, and the mutex and
  /// all that it guards are as some thread of the parent was just leaving them: the child may call
  /// this function alone, and not even the destructor.
  [[nodiscard]] pid_t process() const { return process_; }

  /// As Requests::submit(); also throws Error where partial results are asked for and the job takes
  /// none.
  Request submit(const proto::Operation& operation, const void* in, void* out);

  /// As those of Requests.
  [[nodiscard]] natagg_status wait(Request request, std::optional<Time> timeout) {
    return requests_.wait(request, timeout);
  }
  [[nodiscard]] std::optional<PartialReport> partial(Request request) const {
    return requests_.partial(request);
  }
  void shutdown() noexcept { requests_.shutdown(); }
  [[nodiscard]] Failure failure() const { return requests_.failure(); }
  [[nodiscard]] WorkerStats stats() { return requests_.stats(); }

 private:
  void connect(const WorkerConfig& config);
  void stop();

  const pid_t process_;
  const Time operation_timeout_;
  const bool takes_partial_;
  Requests requests_;
  std::optional<Recording> recording_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace natagg::worker
