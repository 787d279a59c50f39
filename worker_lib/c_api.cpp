// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The C interface: checks arguments, turns exceptions into statuses, and copies.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "natagg/natagg.h"
#include "proto/operation.hpp"
#include "worker_lib/core/conversion.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/options.hpp"
#include "worker_lib/worker.hpp"

using natagg::proto::DataType;
using natagg::worker::Error;
using natagg::worker::Segmentation;

struct natagg_worker {
  explicit natagg_worker(const natagg::worker::WorkerConfig& config) : impl(config) {}

  std::mutex mutex;
  std::string refusal;          // of the last call that was refused
  natagg::worker::Worker impl;  // last, so that its end waits for the calls that use the others
};

namespace {

void copy_text(std::string_view text, char* buffer, std::size_t size) {
  if (buffer == nullptr || size == 0) return;
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
}

/// Runs `body`; the exception it throws becomes a status and goes to `report` as a text.
template <typename Body, typename Report>
natagg_status guarded(Body&& body, Report&& report) noexcept {
  try {
    try {
      body();
      return NATAGG_OK;
    } catch (const Error& error) {
      report(error.what());
      return error.status();
    } catch (const std::bad_alloc&) {
      report("out of memory");
      return NATAGG_NO_MEMORY;
    } catch (const std::invalid_argument& error) {
      report(error.what());
      return NATAGG_INVALID_ARGUMENT;
    } catch (const std::exception& error) {
      report(error.what());
      return NATAGG_SYSTEM_ERROR;
    }
  } catch (...) {  // the report itself found no memory
    return NATAGG_NO_MEMORY;
  }
}

/// Runs `body`, which gives a status, on a worker of this process that stays while it runs.
template <typename Body>
natagg_status on(natagg_worker* worker, Body&& body) noexcept {
  if (worker == nullptr) return NATAGG_INVALID_ARGUMENT;
  if (worker->impl.process() != ::getpid()) return NATAGG_WRONG_PROCESS;
  const natagg::worker::Worker::Call call(worker->impl);
  return body();
}

/// The caller's options, with defaults for members that its version does not know.
natagg_options complete(const natagg_options& given) {
  natagg_options options = natagg::worker::default_options();
  if (given.size < sizeof given.size || given.size > sizeof options) {
    throw Error(NATAGG_INVALID_ARGUMENT, "options: size is " + std::to_string(given.size) +
                                             " where this library, version " + natagg_version() +
                                             ", knows at most " + std::to_string(sizeof options) +
                                             "; natagg_options_init() sets it");
  }
  std::memcpy(&options, &given, given.size);
  return options;
}

[[noreturn]] void refuse(const std::string& why) {
  throw Error(NATAGG_INVALID_ARGUMENT, "allreduce: " + why);
}

static_assert(static_cast<int>(natagg::proto::Reduction::kAverage) == NATAGG_AVERAGE &&
              static_cast<int>(natagg::proto::Reduction::kPartialSum) == NATAGG_PARTIAL_SUM &&
              static_cast<int>(natagg::proto::Reduction::kPartialAverage) ==
                  NATAGG_PARTIAL_AVERAGE);
static_assert(static_cast<int>(DataType::kFloat64) == NATAGG_FLOAT64 &&
              static_cast<int>(DataType::kFloat16) == NATAGG_FLOAT16 &&
              static_cast<int>(DataType::kBfloat16) == NATAGG_BFLOAT16);

natagg::proto::Operation make_operation(std::uint64_t count, natagg_type type,
                                        natagg_reduction reduction) {
  const auto number = static_cast<std::uint32_t>(type);  // DataType has no room for any number
  if (number > NATAGG_BFLOAT16) refuse("there is no type " + std::to_string(number));
  if (reduction < NATAGG_SUM || reduction > NATAGG_PARTIAL_AVERAGE) {
    refuse("there is no reduction " + std::to_string(reduction));
  }
  if (count > natagg::proto::kMaxLength) {
    refuse(std::to_string(count) + " values are more than 2^56 - 1");
  }
  return {.length = count,
          .type = static_cast<DataType>(number),
          .reduction = static_cast<natagg::proto::Reduction>(reduction)};
}

/// The address of `tensor`, which is called `name`.
std::uintptr_t check_tensor(const char* name, const void* tensor, std::uint64_t count,
                            std::size_t value_size) {
  if (tensor == nullptr) {
    refuse(std::string(name) + " is NULL with " + std::to_string(count) + " values");
  }
  const auto address = reinterpret_cast<std::uintptr_t>(tensor);
  if (address % value_size != 0) {
    refuse(std::string(name) + " is not aligned to " + std::to_string(value_size) + " bytes");
  }
  return address;
}

void check_tensors(const void* in, const void* out, const natagg::proto::Operation& operation) {
  const std::uint64_t count = operation.length;
  if (count == 0) return;
  const std::size_t value_size = natagg::worker::size_of(operation.type);
  const std::uintptr_t a = check_tensor("in", in, count, value_size);
  const std::uintptr_t b = check_tensor("out", out, count, value_size);
  if (a == b) return;
  if ((a < b ? b - a : a - b) / value_size < count) {
    refuse("in and out overlap without being equal");
  }
}

natagg_status submit(natagg_worker& worker, const void* in, void* out, std::uint64_t count,
                     natagg_type type, natagg_reduction reduction, natagg_request* request) {
  return guarded(
      [&] {
        if (request == nullptr) refuse("request is NULL");
        const natagg::proto::Operation operation = make_operation(count, type, reduction);
        check_tensors(in, out, operation);
        *request = worker.impl.submit(operation, in, out);
      },
      [&](const char* text) {
        const std::lock_guard lock(worker.mutex);
        worker.refusal = text;
      });
}

natagg_status wait(natagg_worker& worker, natagg_request request, std::int64_t timeout_us) {
  constexpr std::int64_t longest_us = 365LL * 24 * 3600 * 1'000'000;  // fits nanoseconds
  if (timeout_us < 0) return worker.impl.wait(request, std::nullopt);
  return worker.impl.wait(request, std::min(timeout_us, longest_us) * 1000);
}

/// What natagg_error_message() says in another process than the worker's.
void explain_process(const natagg_worker& worker, char* buffer, std::size_t size) {
  static_cast<void>(guarded(
      [&] {
        copy_text("the worker belongs to process " + std::to_string(worker.impl.process()) +
                      ", this is process " + std::to_string(::getpid()) +
                      ": after fork() the child connects workers of its own",
                  buffer, size);
      },
      [](const char*) {}));
}

natagg_gso gso_of(const natagg::worker::WorkerStats& stats) {
  if (stats.transport.segmentation_error != 0) return NATAGG_GSO_REFUSED;
  switch (stats.stream.segmentation) {
    case Segmentation::kProbing: return NATAGG_GSO_PROBING;
    case Segmentation::kNotCarried: return NATAGG_GSO_NOT_CARRIED;
    case Segmentation::kCarried: return NATAGG_GSO_ON;
    default: return NATAGG_GSO_OFF;
  }
}

natagg_statistics convert(const natagg::worker::WorkerStats& stats) {
  natagg_statistics out{};
  out.size = sizeof out;
  out.data_packets = stats.stream.data_packets;
  out.retransmissions = stats.stream.retransmissions;
  out.result_packets = stats.stream.result_packets;
  out.duplicate_results = stats.stream.duplicate_results;
  out.rejected_packets = stats.stream.rejected_packets;
  out.multicast_results = stats.stream.multicast_results;
  out.bytes_sent = stats.stream.bytes_sent;
  out.bytes_received = stats.stream.bytes_received;
  out.kernel_drops = stats.transport.kernel_drops;
  out.send_failures = stats.transport.send_failures;
  out.injected_losses = stats.transport.injected_losses;
  out.values_clipped = stats.stream.encoded.clipped;
  out.values_flushed = stats.stream.encoded.flushed;
  out.values_zero = stats.stream.encoded.zeros;
  out.values_inf = stats.stream.encoded.infs;
  out.values_nan = stats.stream.encoded.nans;
  out.round_trip_ns = static_cast<std::uint64_t>(stats.stream.smoothed_rtt);
  out.receive_buffer_bytes = stats.receive_buffer_bytes;
  out.packets_in_flight = static_cast<std::uint32_t>(stats.in_flight);
  out.mtu = static_cast<std::uint32_t>(stats.mtu);
  out.values_per_packet = stats.stream.values;
  out.window = stats.stream.window;
  out.shards = stats.stream.shards;
  out.multicast_groups = static_cast<std::uint32_t>(stats.groups);
  out.io_threads = static_cast<std::uint32_t>(stats.io_threads);
  out.gso = gso_of(stats);
  out.gso_packets = stats.transport.segmented;
  out.gro_packets = stats.transport.merged;
  out.recorded_packets = stats.transport.recorded;
  out.unrecorded_packets = stats.transport.unrecorded;
  out.record_error = stats.transport.record_error;
  return out;
}

natagg_partial convert(const natagg::worker::PartialReport& report, std::size_t size) {
  natagg_partial out{};
  out.size = size;
  out.chunks = report.chunks;
  out.partial_chunks = report.partial_chunks;
  static_assert(sizeof out.missing == sizeof report.missing);
  std::copy(report.missing.begin(), report.missing.end(), out.missing);
  out.least_ranks = report.least_ranks;
  out.variance_inflation = report.variance_inflation;
  return out;
}

}  // namespace

natagg_status natagg_options_init(natagg_options* options, size_t size) {
  if (options == nullptr || size < sizeof options->size || size > sizeof *options) {
    return NATAGG_INVALID_ARGUMENT;
  }
  natagg_options defaults = natagg::worker::default_options();
  defaults.size = size;
  std::memcpy(options, &defaults, size);
  return NATAGG_OK;
}

natagg_status natagg_connect(const natagg_options* options, natagg_worker** worker, char* error,
                             size_t error_size) {
  copy_text("", error, error_size);
  if (worker != nullptr) *worker = nullptr;
  return guarded(
      [&] {
        if (options == nullptr || worker == nullptr) {
          throw Error(NATAGG_INVALID_ARGUMENT, "connect: options or worker is NULL");
        }
        *worker = new natagg_worker(natagg::worker::make_config(complete(*options)));
      },
      [&](const char* text) { copy_text(text, error, error_size); });
}

natagg_status natagg_allreduce_async(natagg_worker* worker, const void* in, void* out,
                                     uint64_t count, natagg_type type, natagg_reduction reduction,
                                     natagg_request* request) {
  if (request != nullptr) *request = 0;
  return on(worker, [&] { return submit(*worker, in, out, count, type, reduction, request); });
}

natagg_status natagg_wait(natagg_worker* worker, natagg_request request, int64_t timeout_us) {
  return on(worker, [&] { return wait(*worker, request, timeout_us); });
}

natagg_status natagg_test(natagg_worker* worker, natagg_request request) {
  return natagg_wait(worker, request, 0);
}

natagg_status natagg_allreduce(natagg_worker* worker, const void* in, void* out, uint64_t count,
                               natagg_type type, natagg_reduction reduction) {
  return on(worker, [&] {
    natagg_request request = 0;
    const natagg_status status = submit(*worker, in, out, count, type, reduction, &request);
    return status == NATAGG_OK ? wait(*worker, request, -1) : status;
  });
}

void natagg_shutdown(natagg_worker* worker) {
  static_cast<void>(on(worker, [&] {
    worker->impl.shutdown();
    return NATAGG_OK;
  }));
}

void natagg_close(natagg_worker* worker) {
  if (worker != nullptr && worker->impl.process() == ::getpid()) delete worker;
}

natagg_status natagg_error_message(natagg_worker* worker, char* buffer, size_t size,
                                   int32_t* rank) {
  copy_text("", buffer, size);
  if (rank != nullptr) *rank = -1;
  natagg_status result = NATAGG_OK;
  const natagg_status status = on(worker, [&] {
    return guarded(
        [&] {
          const natagg::worker::Failure failure = worker->impl.failure();
          if (failure.status == NATAGG_OK) {
            const std::lock_guard lock(worker->mutex);
            copy_text(worker->refusal, buffer, size);
            return;
          }
          copy_text(failure.message, buffer, size);
          if (rank != nullptr) *rank = failure.rank;
          result = failure.status;
        },
        [](const char*) {});
  });
  if (status == NATAGG_WRONG_PROCESS) explain_process(*worker, buffer, size);
  return status == NATAGG_OK ? result : status;
}

natagg_status natagg_get_statistics(natagg_worker* worker, natagg_statistics* statistics) {
  if (statistics == nullptr || statistics->size < sizeof statistics->size ||
      statistics->size > sizeof *statistics) {
    return NATAGG_INVALID_ARGUMENT;
  }
  return on(worker, [&] {
    return guarded(
        [&] {
          const std::size_t size = statistics->size;
          natagg_statistics all = convert(worker->impl.stats());
          all.size = size;
          std::memcpy(statistics, &all, size);
        },
        [](const char*) {});
  });
}

natagg_status natagg_get_partial(natagg_worker* worker, natagg_request request,
                                 natagg_partial* partial) {
  if (partial == nullptr || partial->size < sizeof partial->size ||
      partial->size > sizeof *partial) {
    return NATAGG_INVALID_ARGUMENT;
  }
  return on(worker, [&] {
    const auto report = worker->impl.partial(request);
    if (!report) return NATAGG_INVALID_ARGUMENT;
    const natagg_partial all = convert(*report, partial->size);
    std::memcpy(partial, &all, partial->size);
    return NATAGG_OK;
  });
}

const char* natagg_gso_string(natagg_gso gso) {
  switch (gso) {
    case NATAGG_GSO_OFF: return "off";
    case NATAGG_GSO_PROBING: return "probing";
    case NATAGG_GSO_NOT_CARRIED: return "not carried by the path";
    case NATAGG_GSO_REFUSED: return "refused by the kernel";
    case NATAGG_GSO_ON: return "on";
    case NATAGG_GSO_32_BITS: break;
  }
  return "unknown";
}

const char* natagg_status_string(natagg_status status) {
  switch (status) {
    case NATAGG_OK: return "done";
    case NATAGG_IN_PROGRESS: return "in progress";
    case NATAGG_INVALID_ARGUMENT: return "invalid argument";
    case NATAGG_TIMED_OUT: return "timed out";
    case NATAGG_REFUSED: return "refused by the aggregator";
    case NATAGG_RANK_LOST: return "another rank was lost";
    case NATAGG_MISMATCH: return "ranks submitted different operations";
    case NATAGG_AGGREGATOR_LOST: return "an aggregator was lost";
    case NATAGG_CLOSED: return "the worker was closed";
    case NATAGG_NO_MEMORY: return "out of memory";
    case NATAGG_SYSTEM_ERROR: return "a system call failed";
    case NATAGG_WRONG_PROCESS: return "the worker belongs to another process";
  }
  return "unknown status";
}

const char* natagg_version() {
  return NATAGG_LIBRARY_VERSION;
}
