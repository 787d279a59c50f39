// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The C++20 interface, header-only over the C interface (natagg.h, which has the rules for order,
// numbers, failure, threads and fork):
//
//   natagg::Worker worker({.aggregators = "10.0.0.1", .rank = rank, .world = 4});
//   natagg::Request request = worker.allreduce_async(gradient, natagg::Reduction::kAverage);
//   ...
//   request.wait();
//
// `gradient` may be a span, vector or array of float, double, Float16 or Bfloat16.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>

#include "natagg/natagg.h"
#include "natagg/types.hpp"

namespace natagg {

/// What every function here throws. what() is a sentence that names rank, chunk, aggregator and
/// numbers where they apply.
class Error : public std::runtime_error {
 public:
  Error(natagg_status status, int rank, const std::string& message)
      : std::runtime_error(message), status_(status), rank_(rank) {}

  [[nodiscard]] natagg_status status() const { return status_; }

  /// The rank at fault; -1 when it is none or, as when connecting, only what() names it.
  [[nodiscard]] int rank() const { return rank_; }

 private:
  natagg_status status_;
  int rank_;
};

enum class Reduction {
  kSum = NATAGG_SUM,
  kAverage = NATAGG_AVERAGE,
  kPartialSum = NATAGG_PARTIAL_SUM,
  kPartialAverage = NATAGG_PARTIAL_AVERAGE,
};
enum class Rounding { kStochastic = NATAGG_STOCHASTIC, kNearest = NATAGG_NEAREST };

/// natagg_options, with the same defaults.
struct Options {
  std::string aggregators = {};
  std::uint32_t job = 0;
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::uint64_t seed = 0;
  Rounding rounding = Rounding::kStochastic;
  std::int32_t shift = 0;
  std::uint32_t values_per_packet = 0;
  std::uint32_t window = 256;
  std::chrono::duration<std::uint32_t, std::milli> connect_timeout{10'000};
  std::chrono::duration<std::uint32_t, std::milli> operation_timeout{30'000};
  std::chrono::duration<std::uint32_t, std::milli> heartbeat{100};
  std::chrono::duration<std::uint32_t, std::milli> aggregator_timeout{5'000};
  std::string local = {};
  std::uint64_t receive_buffer_bytes = 0;
  bool multicast = true;
  double transmit_loss = 0;
  double receive_loss = 0;
  std::uint64_t loss_seed = 0;
  std::string key_file = {};
  std::chrono::duration<std::uint32_t, std::milli> straggler_deadline{0};
  std::uint32_t quorum = 0;
  std::string transport = {};
  std::string eal = {};
  std::chrono::duration<std::uint32_t, std::micro> busy_poll{0};
  std::uint32_t io_threads = 1;
  bool gso = true;
  std::string record = {};
};

/// An operation of a worker, by number. A copy is the same operation, and dropping it does not
/// end it. Any thread may use it, as often as it likes, for as long as the worker is neither closed
/// nor destroyed; moving the worker does no harm. A default-constructed one is of no worker:
/// waiting for it throws Error with NATAGG_INVALID_ARGUMENT.
class Request {
 public:
  Request() = default;
  Request(natagg_worker* worker, natagg_request id) : worker_(worker), id_(id) {}

  /// True when the result is in place, false while it is not; throws Error when it failed.
  [[nodiscard]] bool test() const { return wait(std::chrono::microseconds{0}); }

  /// Waits for at most `timeout`, then as test(). A negative one is 0, the largest is a year.
  [[nodiscard]] bool wait(std::chrono::microseconds timeout) const;

  /// Waits until the result is in place; throws Error when it failed, at its deadline at last.
  void wait() const;

  /// Which ranks the result is without; see natagg_get_partial(). Throws Error when that is not
  /// known.
  [[nodiscard]] natagg_partial partial() const;

  [[nodiscard]] natagg_request id() const { return id_; }

 private:
  [[nodiscard]] bool wait_us(std::int64_t timeout_us) const;

  natagg_worker* worker_ = nullptr;
  natagg_request id_ = 0;
};

/// One rank of one job. Movable; a moved-from worker can be assigned to or destroyed, and all else
/// throws Error with NATAGG_INVALID_ARGUMENT.
class Worker {
 public:
  /// Joins the job and waits until all ranks have, for options.connect_timeout at most.
  explicit Worker(const Options& options);

  /// Leaves the job. Operations in flight fail with NATAGG_CLOSED; their buffers are free again.
  /// No other thread may still use the worker or its requests: shutdown() makes them return.
  /// Does nothing in a child of fork().
  ~Worker() { natagg_close(worker_); }

  Worker(Worker&& other) noexcept : worker_(std::exchange(other.worker_, nullptr)) {}
  Worker& operator=(Worker&& other) noexcept {
    if (this != &other) natagg_close(std::exchange(worker_, std::exchange(other.worker_, nullptr)));
    return *this;
  }

  /// Starts an all-reduce of the values of `in` into `out`, of the same type and size and either
  /// the same memory or not overlapping. Both stay untouched by the caller until the request has
  /// ended. At most 65,536 operations of a worker are in flight at a time.
  template <Values In, MutableValuesLike<In> Out>
  Request allreduce_async(In&& in, Out&& out, Reduction reduction = Reduction::kSum);

  /// In place.
  template <MutableValues InOut>
  Request allreduce_async(InOut&& values, Reduction reduction = Reduction::kSum) {
    return allreduce_async(values, values, reduction);
  }

  /// Of `count` values whose type is known at run time alone.
  Request allreduce_async(const void* in, void* out, std::uint64_t count, DataType type,
                          Reduction reduction = Reduction::kSum);

  /// The same, and waits for the result.
  template <Values In, MutableValuesLike<In> Out>
  void allreduce(In&& in, Out&& out, Reduction reduction = Reduction::kSum) {
    allreduce_async(in, out, reduction).wait();
  }
  template <MutableValues InOut>
  void allreduce(InOut&& values, Reduction reduction = Reduction::kSum) {
    allreduce_async(values, values, reduction).wait();
  }
  void allreduce(const void* in, void* out, std::uint64_t count, DataType type,
                 Reduction reduction = Reduction::kSum) {
    allreduce_async(in, out, count, type, reduction).wait();
  }

  /// Leaves the job from any thread, without waiting: ends all operations and waits with
  /// NATAGG_CLOSED.
  void shutdown() noexcept { natagg_shutdown(worker_); }

  [[nodiscard]] natagg_statistics statistics() const;

  /// For calls of the C interface; stays owned by this object.
  [[nodiscard]] natagg_worker* handle() const noexcept { return worker_; }

 private:
  natagg_worker* worker_ = nullptr;
};

namespace detail {

/// The Error for a call on `worker` that gave `status`.
inline Error make_error(natagg_worker* worker, natagg_status status) {
  std::array<char, 1024> text{};
  std::int32_t rank = -1;
  static_cast<void>(natagg_error_message(worker, text.data(), text.size(), &rank));
  const std::string message = text.front() == '\0' ? natagg_status_string(status) : text.data();
  return Error(status, rank, message);
}

}  // namespace detail

inline Worker::Worker(const Options& options) {
  natagg_options c{};
  static_cast<void>(natagg_options_init(&c, sizeof c));
  c.aggregators = options.aggregators.c_str();
  c.job = options.job;
  c.rank = options.rank;
  c.world = options.world;
  c.seed = options.seed;
  c.rounding = static_cast<natagg_rounding>(options.rounding);
  c.shift = options.shift;
  c.values_per_packet = options.values_per_packet;
  c.window = options.window;
  c.connect_timeout_ms = options.connect_timeout.count();
  c.operation_timeout_ms = options.operation_timeout.count();
  c.heartbeat_ms = options.heartbeat.count();
  c.aggregator_timeout_ms = options.aggregator_timeout.count();
  c.local = options.local.c_str();
  c.receive_buffer_bytes = options.receive_buffer_bytes;
  c.multicast = options.multicast ? 1 : 0;
  c.transmit_loss = options.transmit_loss;
  c.receive_loss = options.receive_loss;
  c.loss_seed = options.loss_seed;
  c.key_file = options.key_file.c_str();
  c.straggler_deadline_ms = options.straggler_deadline.count();
  c.quorum = options.quorum;
  c.transport = options.transport.c_str();
  c.eal = options.eal.c_str();
  c.busy_poll_us = options.busy_poll.count();
  c.io_threads = options.io_threads;
  c.gso = options.gso ? 1 : 0;
  c.record = options.record.c_str();

  std::array<char, 1024> text{};
  const natagg_status status = natagg_connect(&c, &worker_, text.data(), text.size());
  if (status != NATAGG_OK) throw Error(status, -1, text.data());
}

inline Request Worker::allreduce_async(const void* in, void* out, std::uint64_t count,
                                       DataType type, Reduction reduction) {
  natagg_request request = 0;
  const natagg_status status =
      natagg_allreduce_async(worker_, in, out, count, static_cast<natagg_type>(type),
                             static_cast<natagg_reduction>(reduction), &request);
  if (status != NATAGG_OK) throw detail::make_error(worker_, status);
  return {worker_, request};
}

template <Values In, MutableValuesLike<In> Out>
Request Worker::allreduce_async(In&& in, Out&& out, Reduction reduction) {
  const std::uint64_t count = std::ranges::size(in);
  if (count != std::ranges::size(out)) {
    throw Error(NATAGG_INVALID_ARGUMENT, -1,
                "allreduce: " + std::to_string(count) + " values in, " +
                    std::to_string(std::ranges::size(out)) + " out");
  }
  return allreduce_async(std::ranges::data(in), std::ranges::data(out), count,
                         kTypeOf<std::ranges::range_value_t<In>>, reduction);
}

inline natagg_statistics Worker::statistics() const {
  natagg_statistics statistics{};
  statistics.size = sizeof statistics;
  const natagg_status status = natagg_get_statistics(worker_, &statistics);
  if (status != NATAGG_OK) throw Error(status, -1, natagg_status_string(status));
  return statistics;
}

inline natagg_partial Request::partial() const {
  natagg_partial partial{};
  partial.size = sizeof partial;
  const natagg_status status = natagg_get_partial(worker_, id_, &partial);
  if (status != NATAGG_OK) throw Error(status, -1, natagg_status_string(status));
  return partial;
}

inline bool Request::wait_us(std::int64_t timeout_us) const {
  const natagg_status status = natagg_wait(worker_, id_, timeout_us);
  if (status == NATAGG_IN_PROGRESS) return false;
  if (status != NATAGG_OK) throw detail::make_error(worker_, status);
  return true;
}

inline bool Request::wait(std::chrono::microseconds timeout) const {
  return wait_us(timeout.count() < 0 ? 0 : timeout.count());
}

inline void Request::wait() const {
  static_cast<void>(wait_us(-1));
}

}  // namespace natagg
