// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Where callers' threads and a worker's lanes meet: what was asked for and how far it has come, all
// under one mutex. A request has ended when it has in every lane, also when it failed in one: until
// then the others may write to its output.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "worker_lib/core/stream.hpp"
#include "worker_lib/transport/transport.hpp"
#include "worker_lib/worker_stats.hpp"

namespace natagg::worker {

using Request = std::uint64_t;

class Requests {
 public:
  static constexpr std::size_t kMaxLanes = 64;

  /// `partial`: the job takes partial results, and reports on them are kept.
  explicit Requests(bool partial) : takes_partial_(partial) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // --- Callers ---

  /// A call that await_no_calls() waits for begins, or ends.
  void begin_call();
  void end_call();
  void await_no_calls();

  /// Requests count up from 1. Throws Error when the worker has failed or is shut down, and when
  /// 65,536 are in flight.
  Request submit(const Submission& submission);

  /// NATAGG_OK, NATAGG_IN_PROGRESS after `timeout` (none: waits for the end), the failure, or
  /// NATAGG_INVALID_ARGUMENT for what never was a request.
  [[nodiscard]] natagg_status wait(Request request, std::optional<Time> timeout);

  /// Of one of the last 4,096 requests that ended well, where the job takes partial results.
  [[nodiscard]] std::optional<PartialReport> partial(Request request) const;

  /// All lanes are to close, and nothing more is taken. Does not wait.
  void shutdown() noexcept;

  /// Why the worker failed; status NATAGG_OK while it has not.
  [[nodiscard]] Failure failure() const;

  /// Of all lanes together, as of now or of their end.
  [[nodiscard]] WorkerStats stats();

  // --- Starting ---

  /// The next lane, which `transport`, alive while this is, wakes. Returns its number.
  std::size_t add_lane(Transport& transport);
  /// The latest lane's thread could not be started.
  void remove_lane();
  /// Waits until the lane's stream is ready. Throws Error when the worker fails before.
  void await_ready(std::size_t lane);
  /// All lanes are there: submissions are taken from now on.
  void open();

  // --- A lane's thread ---

  /// What a lane is to do.
  struct Orders {
    std::deque<Submission> submissions;  // in the order of their requests
    std::deque<ForeignMove> moves;
    bool close = false;
    std::optional<Failure> failure;  // of another lane, once
    std::uint64_t stats = 0;         // the number of the latest call for them; 0: none is open
  };

  /// Puts what the lane has not been told yet into `orders`, whose lists are empty. Does not
  /// allocate unless something has failed.
  void take(std::size_t lane, Orders& orders);

  /// What has changed in a lane since the last time.
  struct News {
    std::vector<Completion> completions;  // of the requests in order of submission, ids from 0
    std::vector<ForeignMove> moves;       // for the other lanes
    bool ready = false;
    std::optional<Failure> failure{};  // of this lane
    std::optional<WorkerStats> stats{};
    std::uint64_t stats_asked = 0;  // Orders::stats

    [[nodiscard]] bool empty() const {
      return completions.empty() && moves.empty() && !ready && !failure && !stats;
    }
  };
  void publish(std::size_t lane, const News& news);

  /// The lane's thread has ended, and with it all that it had not done; `cause` is why the worker
  /// fails unless it has failed or is shut down.
  void end_lane(std::size_t lane, Failure cause, const WorkerStats& stats);

 private:
  enum class Phase : std::uint8_t { kConnecting, kReady, kFailed, kClosed };

  struct Mailbox {
    Transport* transport;
    Orders orders;
    WorkerStats stats;
    std::uint64_t stats_given = 0;  // to which call
    bool failed_elsewhere = false;  // which the lane has not been told
    bool ready = false;
    bool ended = false;
  };

  struct Progress {
    std::uint64_t lanes;  // bit i: lane i has not ended it
    natagg_status status = NATAGG_IN_PROGRESS;
    PartialReport partial;
  };
  using Entries = std::map<Request, Progress>;

  // All with the mutex held.
  [[nodiscard]] natagg_status status_of(Request request) const;
  void end(Entries::iterator request, std::size_t lane, natagg_status status);
  void fail(std::size_t lane, Failure failure);
  void keep_report(Request request, const PartialReport& report);

  const bool takes_partial_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // of anything below
  Phase phase_ = Phase::kConnecting;
  Failure failure_;                                             // in phases kFailed and kClosed
  Failure closed_{NATAGG_CLOSED, -1, "the worker was closed"};  // for shutdown(), which cannot fail
  std::deque<Mailbox> mailboxes_;                               // one a lane
  Request next_request_ = 1;
  // Requests in progress, and those that failed: the ones in progress when the worker failed or
  // was shut down, so that these cannot pile up. All earlier ones are done.
  Entries requests_;
  std::map<Request, PartialReport> partial_;
  std::uint64_t stats_asked_ = 0;  // calls
  int calls_ = 0;
};

}  // namespace natagg::worker
