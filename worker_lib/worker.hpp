// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A worker runs one stream over one transport in a thread of its own. Callers' threads talk to it
// through a queue, a set of pending requests and a condition variable, all under one mutex; the
// thread alone touches stream and transport. It sleeps until a datagram, a call or the stream's
// next event, and never spins: the cores belong to whoever computes the gradients.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "worker_lib/core/stream.hpp"
#include "worker_lib/options.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

using Request = std::uint64_t;

struct WorkerStats {
  StreamStats stream;
  TransportStats transport;
  std::size_t receive_buffer_bytes = 0;
  std::size_t in_flight = 0;
  std::size_t mtu = 0;
  std::size_t groups = 0;  // multicast groups listened to
};

class Worker {
 public:
  /// A call that another thread's destruction of the worker waits for.
  class Call {
   public:
    explicit Call(Worker& worker);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();

   private:
    Worker& worker_;
  };

  /// Connects; blocks until that has succeeded or failed. Throws Error.
  explicit Worker(const WorkerConfig& config);

  /// shutdown(), then waits for the thread and for every Call.
  ~Worker();

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The process that connected. After fork() the child has no worker thread, and the mutex and
  /// all that it guards are as some thread of the parent was just leaving them: the child may call
  /// this function alone, and not even the destructor.
  [[nodiscard]] pid_t process() const { return process_; }

  /// Requests count up from 1. Throws Error when the worker has failed or is shut down, and when
  /// 65,536 operations are in flight.
  Request submit(const proto::Operation& operation, const void* in, void* out);

  /// NATAGG_OK, NATAGG_IN_PROGRESS after `timeout` (none: waits for the end), the failure, or
  /// NATAGG_INVALID_ARGUMENT for what never was a request.
  [[nodiscard]] natagg_status wait(Request request, std::optional<Time> timeout);

  /// Of one of the last 4,096 requests that ended well, where the job has a straggler deadline.
  [[nodiscard]] std::optional<PartialReport> partial(Request request) const;

  /// Ends everything in flight with NATAGG_CLOSED. Does not wait.
  void shutdown() noexcept;

  /// Why the worker failed; status NATAGG_OK while it has not.
  [[nodiscard]] Failure failure() const;

  /// As of now, or of the thread's end.
  [[nodiscard]] WorkerStats stats();

 private:
  enum class Phase : std::uint8_t { kConnecting, kReady, kFailed, kClosed };

  void start_thread();
  void await_connection();
  void stop();
  [[nodiscard]] natagg_status status_of(Request request) const;  // mutex_ held

  // The worker thread.
  void run() noexcept;
  void loop();
  void receive_arrived();
  void rest();
  void join_new_groups();
  void take_requests();
  void transmit();
  void publish();
  void keep_report(const Completion& completion);  // mutex_ held
  void finish(Failure cause);
  [[nodiscard]] bool done(Time now) const;
  [[nodiscard]] Time next_event() const;
  [[nodiscard]] Failure describe_failure() const;
  [[nodiscard]] WorkerStats collect_stats() const;

  const pid_t process_;
  const Time operation_timeout_;
  const Time busy_poll_;
  const bool takes_partial_;

  // The worker thread's own, once it runs; but any thread may wake the transport.
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Stream> stream_;
  std::vector<Outgoing> outgoing_;
  Time poll_until_ = 0;
  std::deque<Submission> taken_;  // from queue_; empty between turns
  std::size_t groups_seen_ = 0;
  std::size_t groups_joined_ = 0;
  std::optional<Time> closing_since_;
  WorkerStats fixed_;  // the members that do not change

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // of anything below
  Phase phase_ = Phase::kConnecting;
  Failure failure_;                                             // in phases kFailed and kClosed
  Failure closed_{NATAGG_CLOSED, -1, "the worker was closed"};  // for shutdown(), which cannot fail
  std::deque<Submission> queue_;
  Request next_request_ = 1;
  // Requests in progress, and those that failed: the ones in progress when the worker failed or
  // was shut down, so that these cannot pile up. All earlier ones are done.
  std::map<Request, natagg_status> requests_;
  std::map<Request, PartialReport> partial_;
  bool stats_wanted_ = false;
  std::uint64_t stats_version_ = 0;
  WorkerStats stats_;
  bool thread_ended_ = false;
  int calls_ = 0;  // that exist

  std::thread thread_;  // last: it starts when all else exists
};

}  // namespace natagg::worker
