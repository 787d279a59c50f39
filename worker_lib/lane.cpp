// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/lane.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include "worker_lib/blocked_signals.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/transport/carrier.hpp"
#include "worker_lib/transport/lossy.hpp"
#include "worker_lib/transport/recorded.hpp"

namespace natagg::worker {
namespace {

/// How long a closing worker waits for the aggregators to confirm.
constexpr Time kLinger = 400'000'000;

/// Batches read between two turns of sending, so that a flood cannot keep the worker from it.
constexpr int kBatchesATurn = 64;

}  // namespace

Time Lane::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Lane::Lane(const WorkerConfig& config, StreamConfig stream, Requests& requests,
           Recording* recording)
    : requests_(requests), busy_poll_(config.busy_poll), outgoing_(kBatch) {
  Carrier carrier = make_carrier(config, stream.instance);
  stream.mtu = carrier.mtu;
  stream.in_flight = carrier.in_flight;
  stream.segmentation = carrier.segmentation;
  fixed_.mtu = stream.mtu;
  fixed_.in_flight = stream.in_flight;
  fixed_.receive_buffer_bytes = carrier.receive_buffer_bytes;

  transport_ = std::move(carrier.transport);
  if (recording != nullptr) {
    transport_ = std::make_unique<RecordedTransport>(std::move(transport_), recording->add_track(),
                                                     carrier.local);
  }
  if (config.transmit_loss > 0 || config.receive_loss > 0) {
    transport_ =
        std::make_unique<LossyTransport>(std::move(transport_), config.transmit_loss,
                                         config.receive_loss, config.loss_seed + stream.lane.index);
  }
  stream_ = std::make_unique<Stream>(std::move(stream), now());
  index_ = requests_.add_lane(*transport_);
  start_thread();
}

Lane::~Lane() {
  join();
}

void Lane::join() {
  if (thread_.joinable()) thread_.join();
}

void Lane::start_thread() {
  const BlockedSignals blocked;
  try {
    thread_ = std::thread(&Lane::run, this);
  } catch (const std::system_error& error) {
    requests_.remove_lane();
    throw_system_error(error.code().value(), "pthread_create()", "`ulimit -u` limits threads");
  } catch (...) {
    requests_.remove_lane();
    throw;
  }
}

void Lane::run() noexcept {
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
  requests_.end_lane(index_, std::move(cause), collect_stats());
}

void Lane::loop() {
  for (;;) {
    receive_arrived();
    join_new_groups();
    take_orders();
    transmit();
    publish();
    if (done(now())) return;
    rest();
  }
}

/// Until something is to be done, at most.
void Lane::rest() {
  const Time time = now();
  if (time < poll_until_) return std::this_thread::yield();
  transport_->wait(next_event() - time);
}

/// Everything that has arrived goes in before anything goes out: else a thread that was
/// descheduled for longer than the retransmission time-out would send again what is answered.
void Lane::receive_arrived() {
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
void Lane::join_new_groups() {
  const std::span<const proto::Endpoint> groups = stream_->groups();
  for (; groups_seen_ < groups.size(); ++groups_seen_) {
    if (transport_->join(groups[groups_seen_])) ++groups_joined_;
  }
}

void Lane::take_orders() {
  requests_.take(index_, orders_);
  if (!orders_.submissions.empty()) poll_until_ = now() + busy_poll_;
  // The stream numbers operations as Requests does, but from 0.
  for (const Submission& submission : orders_.submissions) stream_->submit(submission);
  orders_.submissions.clear();
  for (const ForeignMove& move : orders_.moves) stream_->receive(move, now());
  orders_.moves.clear();
  if (orders_.failure) stream_->fail(*orders_.failure, now());
  orders_.failure.reset();
  if (orders_.close && !closing_since_) {
    closing_since_ = now();
    stream_->close(*closing_since_);
  }
}

void Lane::transmit() {
  const Time time = now();
  while (const std::size_t count = stream_->transmit(time, outgoing_)) {
    transport_->send(std::span(outgoing_).first(count));
  }
}

void Lane::publish() {
  news_.completions.clear();
  while (const auto completion = stream_->poll_completion()) {
    news_.completions.push_back(*completion);
  }
  news_.moves.clear();
  while (const auto move = stream_->poll_foreign_move()) news_.moves.push_back(*move);
  const Stream::State state = stream_->state();
  const bool news = state != published_;
  news_.ready = news && state == Stream::State::kReady;
  news_.failure.reset();
  if (news && state == Stream::State::kFailed) news_.failure = describe_failure();
  news_.stats.reset();
  news_.stats_asked = orders_.stats;
  if (orders_.stats != 0) news_.stats = collect_stats();
  requests_.publish(index_, news_);
  published_ = state;
}

bool Lane::done(Time now) const {
  if (!closing_since_) return false;
  const Stream::State state = stream_->state();
  return state == Stream::State::kClosed || state == Stream::State::kFailed ||
         now - *closing_since_ >= kLinger;
}

Time Lane::next_event() const {
  const Time event = stream_->next_event();
  return closing_since_ ? std::min(event, *closing_since_ + kLinger) : event;
}

Failure Lane::describe_failure() const {
  Failure failure = stream_->failure();
  const int code = transport_->stats().last_send_error;
  if (code != 0 &&
      (failure.status == NATAGG_TIMED_OUT || failure.status == NATAGG_AGGREGATOR_LOST)) {
    failure.message += "; the latest send error was: " + std::generic_category().message(code);
  }
  return failure;
}

WorkerStats Lane::collect_stats() const {
  WorkerStats stats = fixed_;
  stats.stream = stream_->stats();
  stats.transport = transport_->stats();
  stats.groups = groups_joined_;
  return stats;
}

}  // namespace natagg::worker
