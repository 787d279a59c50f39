// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/requests.hpp"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <string>
#include <utility>

#include "worker_lib/error.hpp"

namespace natagg::worker {
namespace {

/// Operations that were submitted and have not ended: what a program that never waits can queue.
constexpr std::size_t kMaxInFlight = 65'536;

/// Reports on partial results that nobody may ever ask for.
constexpr std::size_t kMaxReports = 4'096;

/// All lanes' bits.
std::uint64_t mask(std::size_t lanes) {
  return ~std::uint64_t{0} >> (Requests::kMaxLanes - lanes);
}

/// Adds what another lane says of an operation. A lane without chunks of it says nothing.
void add(PartialReport& sum, const PartialReport& lane) {
  if (lane.chunks == 0 && sum.chunks != 0) return;
  if (sum.chunks == 0) {
    sum = lane;
    return;
  }
  sum.chunks += lane.chunks;
  sum.partial_chunks += lane.partial_chunks;
  sum.least_ranks = std::min(sum.least_ranks, lane.least_ranks);
  sum.variance_inflation += lane.variance_inflation - 1;
  for (std::size_t i = 0; i < sum.missing.size(); ++i) sum.missing[i] |= lane.missing[i];
}

}  // namespace

// --- Callers ---

void Requests::begin_call() {
  const std::lock_guard lock(mutex_);
  ++calls_;
}

void Requests::end_call() {
  const std::lock_guard lock(mutex_);
  // Under the mutex: the worker may be gone as soon as it is free.
  if (--calls_ == 0) changed_.notify_all();
}

void Requests::await_no_calls() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return calls_ == 0; });
}

Request Requests::submit(const Submission& submission) {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kConnecting) throw Error(NATAGG_CLOSED, "the worker is not connected");
  if (phase_ != Phase::kReady) throw Error(failure_.status, failure_.message, failure_.rank);
  if (requests_.size() >= kMaxInFlight) {
    throw Error(NATAGG_INVALID_ARGUMENT, std::to_string(requests_.size()) +
                                             " operations are in flight, the most that a worker "
                                             "takes: wait for one before the next");
  }
  const auto entry = requests_.emplace_hint(
      requests_.end(), next_request_, Progress{.lanes = mask(mailboxes_.size()), .partial = {}});
  std::size_t queued = 0;
  try {
    for (Mailbox& mailbox : mailboxes_) {
      mailbox.orders.submissions.push_back(submission);
      ++queued;
    }
  } catch (...) {
    for (Mailbox& mailbox : mailboxes_) {
      if (queued-- == 0) break;
      mailbox.orders.submissions.pop_back();
    }
    requests_.erase(entry);
    throw;
  }
  for (const Mailbox& mailbox : mailboxes_) {
    // Else the thread has yet to come for the first.
    if (mailbox.orders.submissions.size() == 1) mailbox.transport->wake();
  }
  return next_request_++;
}

natagg_status Requests::status_of(Request request) const {
  if (request == 0 || request >= next_request_) return NATAGG_INVALID_ARGUMENT;
  const auto found = requests_.find(request);
  if (found == requests_.end()) return NATAGG_OK;
  return found->second.lanes != 0 ? NATAGG_IN_PROGRESS : found->second.status;
}

std::optional<PartialReport> Requests::partial(Request request) const {
  const std::lock_guard lock(mutex_);
  const auto found = partial_.find(request);
  return found == partial_.end() ? std::nullopt : std::optional(found->second);
}

natagg_status Requests::wait(Request request, std::optional<Time> timeout) {
  std::unique_lock lock(mutex_);
  const auto ended = [&] { return status_of(request) != NATAGG_IN_PROGRESS; };
  if (!timeout) {
    changed_.wait(lock, ended);
  } else if (*timeout > 0) {
    changed_.wait_for(lock, std::chrono::nanoseconds(*timeout), ended);
  }
  return status_of(request);
}

void Requests::shutdown() noexcept {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kClosed) return;
  const bool failed = phase_ == Phase::kFailed;
  phase_ = Phase::kClosed;
  if (!failed) failure_ = std::move(closed_);
  for (Mailbox& mailbox : mailboxes_) {
    mailbox.orders.close = true;
    mailbox.transport->wake();
  }
}

Failure Requests::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

WorkerStats Requests::stats() {
  std::unique_lock lock(mutex_);
  const std::uint64_t asked = ++stats_asked_;
  for (const Mailbox& mailbox : mailboxes_) mailbox.transport->wake();
  changed_.wait(lock, [&] {
    return std::ranges::all_of(mailboxes_, [asked](const Mailbox& mailbox) {
      return mailbox.ended || mailbox.stats_given >= asked;
    });
  });
  WorkerStats all = mailboxes_.front().stats;
  for (const Mailbox& mailbox : mailboxes_ | std::views::drop(1)) add(all, mailbox.stats);
  return all;
}

// --- Starting ---

std::size_t Requests::add_lane(Transport& transport) {
  const std::lock_guard lock(mutex_);
  mailboxes_.push_back({.transport = &transport, .orders = {}, .stats = {}});
  return mailboxes_.size() - 1;
}

void Requests::remove_lane() {
  const std::lock_guard lock(mutex_);
  mailboxes_.pop_back();
}

void Requests::await_ready(std::size_t lane) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return phase_ != Phase::kConnecting || mailboxes_[lane].ready; });
  if (phase_ != Phase::kConnecting) throw Error(failure_.status, failure_.message, failure_.rank);
}

void Requests::open() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kConnecting) throw Error(failure_.status, failure_.message, failure_.rank);
  phase_ = Phase::kReady;
}

// --- A lane's thread ---

void Requests::take(std::size_t lane, Orders& orders) {
  const std::lock_guard lock(mutex_);
  Orders& waiting = mailboxes_[lane].orders;
  orders.submissions.swap(waiting.submissions);
  orders.moves.swap(waiting.moves);
  if (std::exchange(mailboxes_[lane].failed_elsewhere, false)) orders.failure = failure_;
  orders.stats = mailboxes_[lane].stats_given < stats_asked_ ? stats_asked_ : 0;
  orders.close = waiting.close;
}

void Requests::publish(std::size_t lane, const News& news) {
  if (news.empty()) return;
  const std::lock_guard lock(mutex_);
  if (news.failure) fail(lane, *news.failure);
  for (const Completion& completion : news.completions) {
    const auto request = requests_.find(completion.id + 1);
    if (request == requests_.end()) continue;
    if (takes_partial_) add(request->second.partial, completion.partial);
    end(request, lane, completion.status);
  }
  for (const ForeignMove& move : news.moves) {
    for (std::size_t other = 0; other < mailboxes_.size(); ++other) {
      if (other == lane) continue;
      mailboxes_[other].orders.moves.push_back(move);
      mailboxes_[other].transport->wake();
    }
  }
  mailboxes_[lane].ready |= news.ready;
  if (news.stats) {
    mailboxes_[lane].stats = *news.stats;
    mailboxes_[lane].stats_given = news.stats_asked;
  }
  changed_.notify_all();
}

void Requests::end_lane(std::size_t lane, Failure cause, const WorkerStats& stats) {
  const std::lock_guard lock(mutex_);
  if (phase_ <= Phase::kReady) fail(lane, std::move(cause));
  for (auto request = requests_.begin(); request != requests_.end(); ++request) {
    if ((request->second.lanes >> lane & 1) != 0) end(request, lane, failure_.status);
  }
  mailboxes_[lane].stats = stats;
  mailboxes_[lane].ended = true;
  changed_.notify_all();
}

/// The first failure of a request is its own; one that ended well everywhere is forgotten.
void Requests::end(Entries::iterator request, std::size_t lane, natagg_status status) {
  Progress& progress = request->second;
  progress.lanes &= ~(std::uint64_t{1} << lane);
  if (status != NATAGG_OK && progress.status == NATAGG_IN_PROGRESS) progress.status = status;
  if (progress.lanes != 0 || progress.status != NATAGG_IN_PROGRESS) return;
  const auto ended = requests_.extract(request);
  if (takes_partial_) keep_report(ended.key(), ended.mapped().partial);
}

void Requests::fail(std::size_t lane, Failure failure) {
  if (phase_ > Phase::kReady) return;
  phase_ = Phase::kFailed;
  failure_ = std::move(failure);
  for (std::size_t other = 0; other < mailboxes_.size(); ++other) {
    if (other == lane) continue;
    mailboxes_[other].failed_elsewhere = true;
    mailboxes_[other].transport->wake();
  }
}

void Requests::keep_report(Request request, const PartialReport& report) {
  partial_.emplace_hint(partial_.end(), request, report);
  if (partial_.size() > kMaxReports) partial_.erase(partial_.begin());
}

}  // namespace natagg::worker
