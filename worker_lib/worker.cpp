// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/worker.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <random>
#include <system_error>
#include <utility>

#include "keys/key_file.hpp"
#include "proto/packet.hpp"
#include "worker_lib/blocked_signals.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/transport/carrier.hpp"
#include "worker_lib/transport/lossy.hpp"

namespace natagg::worker {
namespace {

/// How long a closing worker waits for the aggregators to confirm.
constexpr Time kLinger = 400'000'000;

/// Batches read between two turns of sending, so that a flood cannot keep the worker from it.
constexpr int kBatchesATurn = 64;

/// Operations that were submitted and have not ended: what a program that never waits can queue.
constexpr std::size_t kMaxInFlight = 65'536;

/// Reports on partial results that nobody may ever ask for.
constexpr std::size_t kMaxReports = 4'096;

Time now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::uint64_t random_instance() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

Worker::Call::Call(Worker& worker) : worker_(worker) {
  const std::lock_guard lock(worker_.mutex_);
  ++worker_.calls_;
}

Worker::Call::~Call() {
  const std::lock_guard lock(worker_.mutex_);
  // Under the mutex: the worker may be gone as soon as it is free.
  if (--worker_.calls_ == 0) worker_.changed_.notify_all();
}

Worker::Worker(const WorkerConfig& config)
    : process_(::getpid()),
      operation_timeout_(config.operation_timeout),
      busy_poll_(config.busy_poll),
      takes_partial_(config.stream.straggler_deadline != 0),
      outgoing_(kBatch) {
  StreamConfig stream = config.stream;
  stream.instance = random_instance();
  Carrier carrier = make_carrier(config, stream.instance);
  stream.mtu = carrier.mtu;
  stream.in_flight = carrier.in_flight;
  if (stream.key) stream.entropy = keys::random_secret();
  const Time start = now();
  stream.connect_deadline = start + config.connect_timeout;
  fixed_.mtu = stream.mtu;
  fixed_.in_flight = stream.in_flight;
  fixed_.receive_buffer_bytes = carrier.receive_buffer_bytes;

  transport_ = std::move(carrier.transport);
  if (config.transmit_loss > 0 || config.receive_loss > 0) {
    transport_ = std::make_unique<LossyTransport>(std::move(transport_), config.transmit_loss,
                                                  config.receive_loss, config.loss_seed);
  }
  stream_ = std::make_unique<Stream>(std::move(stream), start);
  start_thread();
  try {
    await_connection();
  } catch (...) {
    stop();
    throw;
  }
}

Worker::~Worker() {
  stop();
}

void Worker::start_thread() {
  const BlockedSignals blocked;
  try {
    thread_ = std::thread(&Worker::run, this);
  } catch (const std::system_error& error) {
    throw_system_error(error.code().value(), "pthread_create()", "`ulimit -u` limits threads");
  }
}

void Worker::await_connection() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ != Phase::kConnecting; });
  if (phase_ != Phase::kReady) throw Error(failure_.status, failure_.message, failure_.rank);
}

void Worker::stop() {
  shutdown();
  thread_.join();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return calls_ == 0; });
}

Request Worker::submit(const proto::Operation& operation, const void* in, void* out) {
  if (proto::may_be_partial(operation.reduction) && !takes_partial_) {
    throw Error(NATAGG_INVALID_ARGUMENT,
                "allreduce: a partial reduction needs the option straggler_deadline_ms");
  }
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::kReady) throw Error(failure_.status, failure_.message, failure_.rank);
  if (requests_.size() >= kMaxInFlight) {
    throw Error(NATAGG_INVALID_ARGUMENT, std::to_string(requests_.size()) +
                                             " operations are in flight, the most that a worker "
                                             "takes: wait for one before the next");
  }
  const auto entry = requests_.emplace_hint(requests_.end(), next_request_, NATAGG_IN_PROGRESS);
  try {
    queue_.push_back(
        {.operation = operation, .in = in, .out = out, .deadline = now() + operation_timeout_});
  } catch (...) {
    requests_.erase(entry);
    throw;
  }
  if (queue_.size() == 1) transport_->wake();  // else the thread has yet to come for the first
  return next_request_++;
}

natagg_status Worker::status_of(Request request) const {
  if (request == 0 || request >= next_request_) return NATAGG_INVALID_ARGUMENT;
  const auto found = requests_.find(request);
  return found == requests_.end() ? NATAGG_OK : found->second;
}

std::optional<PartialReport> Worker::partial(Request request) const {
  const std::lock_guard lock(mutex_);
  const auto found = partial_.find(request);
  return found == partial_.end() ? std::nullopt : std::optional(found->second);
}

natagg_status Worker::wait(Request request, std::optional<Time> timeout) {
  std::unique_lock lock(mutex_);
  const auto ended = [&] { return status_of(request) != NATAGG_IN_PROGRESS; };
  if (!timeout) {
    changed_.wait(lock, ended);
  } else if (*timeout > 0) {
    changed_.wait_for(lock, std::chrono::nanoseconds(*timeout), ended);
  }
  return status_of(request);
}

void Worker::shutdown() noexcept {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::kClosed) return;
  const bool failed = phase_ == Phase::kFailed;
  phase_ = Phase::kClosed;
  if (!failed) failure_ = std::move(closed_);
  transport_->wake();
}

Failure Worker::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

WorkerStats Worker::stats() {
  std::unique_lock lock(mutex_);
  const std::uint64_t seen = stats_version_;
  stats_wanted_ = true;
  transport_->wake();
  changed_.wait(lock, [&] { return stats_version_ != seen || thread_ended_; });
  return stats_;
}

// --- The worker thread ---

void Worker::run() noexcept {
  pthread_setname_np(pthread_self(), "natagg-worker");
  Failure cause{NATAGG_NO_MEMORY, -1, "out of memory"};  // short enough to need none itself
  try {
    try {
      loop();
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& error) {
      cause = {NATAGG_SYSTEM_ERROR, -1, error.what()};
    }
  } catch (const std::bad_alloc&) {  // by the copy of the text
  }
  finish(std::move(cause));
}

void Worker::loop() {
  for (;;) {
    receive_arrived();
    join_new_groups();
    take_requests();
    transmit();
    publish();
    if (done(now())) return;
    rest();
  }
}

/// Until something is to be done, at most.
void Worker::rest() {
  const Time time = now();
  if (time < poll_until_) return std::this_thread::yield();
  transport_->wait(next_event() - time);
}

/// Everything that has arrived goes in before anything goes out: else a thread that was
/// descheduled for longer than the retransmission time-out would send again what is answered.
void Worker::receive_arrived() {
  for (int i = 0; i < kBatchesATurn; ++i) {
    const std::span<const Incoming> batch = transport_->receive();
    if (batch.empty()) return;
    const Time time = now();
    poll_until_ = time + busy_poll_;
    for (const Incoming& incoming : batch) {
      stream_->receive(incoming.datagram, incoming.source, time, incoming.congested);
    }
  }
}

/// Where joining fails, the aggregator hears no answer to its probe and sends to each worker.
void Worker::join_new_groups() {
  const std::span<const proto::Endpoint> groups = stream_->groups();
  for (; groups_seen_ < groups.size(); ++groups_seen_) {
    if (transport_->join(groups[groups_seen_])) ++groups_joined_;
  }
}

void Worker::take_requests() {
  bool close = false;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(queue_);
    close = phase_ == Phase::kClosed;
  }
  if (!taken_.empty()) poll_until_ = now() + busy_poll_;
  // The stream numbers operations as the worker does, but from 0.
  for (const Submission& submission : taken_) stream_->submit(submission);
  taken_.clear();
  if (close && !closing_since_) {
    closing_since_ = now();
    stream_->close(*closing_since_);
  }
}

void Worker::transmit() {
  const Time time = now();
  while (const std::size_t count = stream_->transmit(time, outgoing_)) {
    transport_->send(std::span(outgoing_).first(count));
  }
}

void Worker::publish() {
  const std::lock_guard lock(mutex_);
  bool news = false;
  while (const std::optional<Completion> completion = stream_->poll_completion()) {
    const auto request = requests_.find(completion->id + 1);
    if (request == requests_.end()) continue;
    if (completion->status == NATAGG_OK) {
      requests_.erase(request);
      if (takes_partial_) keep_report(*completion);
    } else {
      request->second = completion->status;
    }
    news = true;
  }
  const Stream::State state = stream_->state();
  if (phase_ == Phase::kConnecting && state == Stream::State::kReady) {
    phase_ = Phase::kReady;
    news = true;
  }
  if (state == Stream::State::kFailed && phase_ <= Phase::kReady) {
    failure_ = describe_failure();  // first, as it may throw
    phase_ = Phase::kFailed;
    news = true;
  }
  if (stats_wanted_) {
    stats_wanted_ = false;
    stats_ = collect_stats();
    ++stats_version_;
    news = true;
  }
  if (news) changed_.notify_all();
}

void Worker::keep_report(const Completion& completion) {
  partial_.emplace_hint(partial_.end(), completion.id + 1, completion.partial);
  if (partial_.size() > kMaxReports) partial_.erase(partial_.begin());
}

void Worker::finish(Failure cause) {
  const std::lock_guard lock(mutex_);
  if (phase_ <= Phase::kReady) {
    phase_ = Phase::kFailed;
    failure_ = std::move(cause);
  }
  for (auto& [request, status] : requests_) {
    if (status == NATAGG_IN_PROGRESS) status = failure_.status;
  }
  stats_ = collect_stats();
  thread_ended_ = true;
  changed_.notify_all();
}

bool Worker::done(Time now) const {
  if (!closing_since_) return false;
  const Stream::State state = stream_->state();
  return state == Stream::State::kClosed || state == Stream::State::kFailed ||
         now - *closing_since_ >= kLinger;
}

Time Worker::next_event() const {
  const Time event = stream_->next_event();
  return closing_since_ ? std::min(event, *closing_since_ + kLinger) : event;
}

Failure Worker::describe_failure() const {
  Failure failure = stream_->failure();
  const int code = transport_->stats().last_send_error;
  if (code != 0 &&
      (failure.status == NATAGG_TIMED_OUT || failure.status == NATAGG_AGGREGATOR_LOST)) {
    failure.message += "; the latest send error was: " + std::generic_category().message(code);
  }
  return failure;
}

WorkerStats Worker::collect_stats() const {
  WorkerStats stats = fixed_;
  stats.stream = stream_->stats();
  stats.transport = transport_->stats();
  stats.groups = groups_joined_;
  return stats;
}

}  // namespace natagg::worker
