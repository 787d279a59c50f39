// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/options.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "keys/key_file.hpp"
#include "proto/nat8.hpp"
#include "proto/packet.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/requests.hpp"
#include "worker_lib/transport/address.hpp"

namespace natagg::worker {
namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr Time kHeartbeatsToMiss = 4;
constexpr Time kMicrosecond = 1'000;
constexpr std::uint32_t kMostBusyPoll_us = 1'000'000;
constexpr std::uint32_t kMostIoThreads = Requests::kMaxLanes;

[[noreturn]] void refuse(const char* option, const std::string& why) {
  throw Error(NATAGG_INVALID_ARGUMENT, std::string(option) + ": " + why);
}

// Not "literal" + temporary, in which GCC 12 sees an overlap (its bug 105651).
std::string quoted(std::string_view text) {
  std::string result = "\"";
  return result.append(text).append("\"");
}

template <typename T>
void check_range(const char* option, T value, T least, T most) {
  if (value >= least && value <= most) return;  // false for NaN as well
  refuse(option, std::to_string(value) + " is not from " + std::to_string(least) + " to " +
                     std::to_string(most));
}

Time milliseconds(const char* option, std::uint32_t value) {
  check_range<std::uint32_t>(option, value, 1, std::numeric_limits<std::uint32_t>::max());
  return Time{value} * kMillisecond;
}

void check_window(std::uint32_t window) {
  if (std::has_single_bit(window) && window <= 1U << 15) return;
  refuse("window", std::to_string(window) + " is not a power of two up to 32768");
}

void check_values(std::uint32_t values) {
  if (values % proto::kValuesMultiple == 0 && values <= proto::kMaxValues) return;
  refuse("values_per_packet", std::to_string(values) + " is not a multiple of " +
                                  std::to_string(proto::kValuesMultiple) + " up to " +
                                  std::to_string(proto::kMaxValues));
}

void set_stragglers(const natagg_options& options, StreamConfig& config) {
  check_range<std::uint32_t>("straggler_deadline_ms", options.straggler_deadline_ms, 0, 0xFFFF);
  check_range<std::uint32_t>("quorum", options.quorum, 0, options.world);
  if (options.straggler_deadline_ms == 0) return;
  if (options.world > proto::kMaxPartialWorld) {
    refuse("straggler_deadline_ms", "partial results are for at most " +
                                        std::to_string(proto::kMaxPartialWorld) +
                                        " ranks, world is " + std::to_string(options.world));
  }
  config.straggler_deadline = Time{options.straggler_deadline_ms} * kMillisecond;
  config.quorum = static_cast<std::uint16_t>(options.quorum);
}

std::shared_ptr<const proto::JobKey> read_key(const char* path, std::uint32_t job) {
  try {
    return std::make_shared<proto::JobKey>(keys::read_key_file(path, job));
  } catch (const std::invalid_argument& error) {
    refuse("key_file", error.what());
  }
}

StreamConfig make_stream_config(const natagg_options& options) {
  check_range<std::uint32_t>("world", options.world, 1, proto::kMaxWorld);
  check_range<std::uint32_t>("rank", options.rank, 0, options.world - 1);
  check_range<std::int32_t>("shift", options.shift, -nat8::kMaxShift, nat8::kMaxShift);
  check_range<std::int32_t>("rounding", options.rounding, NATAGG_STOCHASTIC, NATAGG_NEAREST);
  check_window(options.window);
  check_values(options.values_per_packet);
  const Time heartbeat = milliseconds("heartbeat_ms", options.heartbeat_ms);
  const Time silence = milliseconds("aggregator_timeout_ms", options.aggregator_timeout_ms);
  if (silence <= heartbeat) {
    refuse("aggregator_timeout_ms", std::to_string(options.aggregator_timeout_ms) +
                                        " is not more than heartbeat_ms, " +
                                        std::to_string(options.heartbeat_ms));
  }
  StreamConfig config;
  config.aggregators = parse_aggregators(options.aggregators == nullptr ? "" : options.aggregators);
  config.job = options.job;
  config.rank = static_cast<std::uint16_t>(options.rank);
  config.world = static_cast<std::uint16_t>(options.world);
  config.seed = options.seed;
  config.rounding =
      options.rounding == NATAGG_NEAREST ? proto::Rounding::kNearest : proto::Rounding::kStochastic;
  config.shift = options.shift;
  config.values = static_cast<std::uint16_t>(options.values_per_packet);
  config.window = static_cast<std::uint16_t>(options.window);
  config.heartbeat_interval = heartbeat;
  config.aggregator_timeout = silence;
  // No single heartbeat that is late or lost may move a place of the pool.
  config.failover_timeout =
      std::min(std::max(config.failover_timeout, kHeartbeatsToMiss * heartbeat), silence);
  set_stragglers(options, config);
  if (options.key_file != nullptr && *options.key_file != '\0') {
    config.key = read_key(options.key_file, options.job);
  }
  return config;
}

/// What a kernel would do for a socket is not asked of a transport without one.
void refuse_socket_options(const natagg_options& options, const UdpConfig& udp, const char* name) {
  if (!udp.local.interface.empty()) {
    refuse("local",
           quoted(udp.local.interface) + " is no IPv4 address, and " + name + " has no interface");
  }
  if (options.receive_buffer_bytes != 0) {
    refuse("receive_buffer_bytes", std::to_string(options.receive_buffer_bytes) +
                                       " is for a socket, and " + name + " has none");
  }
}

void set_transport(const natagg_options& options, WorkerConfig& config) {
  constexpr std::string_view kMemif = "memif:";
  constexpr std::string_view kEthdev = "ethdev:";
  const std::string_view transport = options.transport == nullptr ? "" : options.transport;
  const std::string eal_arguments = options.eal == nullptr ? "" : options.eal;
  const UdpConfig& udp = config.udp;
  if (transport.starts_with(kEthdev)) {
    refuse_socket_options(options, udp, "ethdev");
    if (transport == kEthdev) {
      refuse("transport", "\"ethdev:\" names no device, such as ethdev:net_af_packet0,iface=eth1");
    }
    config.ethdev = {.device = std::string(transport.substr(kEthdev.size())),
                     .eal_arguments = eal_arguments,
                     .aggregators = udp.aggregators,
                     .local = udp.local.address,
                     .multicast = udp.multicast};
    return;
  }
  if (!eal_arguments.empty()) {
    refuse("eal", quoted(eal_arguments) + " is for DPDK, which only ethdev uses");
  }
  if (transport.starts_with(kMemif)) {
    refuse_socket_options(options, udp, "memif");
    config.memif = {.address = parse_memif(transport.substr(kMemif.size())),
                    .aggregators = udp.aggregators,
                    .local = udp.local.address};
  } else if (!transport.empty() && transport != "udp") {
    refuse("transport", quoted(transport) + " is neither udp, memif:PATH[,id=N] nor ethdev:DEVICE");
  }
}

void set_io_threads(const natagg_options& options, WorkerConfig& config) {
  check_range<std::uint32_t>("io_threads", options.io_threads, 0, kMostIoThreads);
  config.io_threads = static_cast<std::uint16_t>(std::max(options.io_threads, 1U));
  if (config.io_threads > 1 && (config.memif || config.ethdev)) {
    refuse("io_threads", std::to_string(config.io_threads) +
                             " threads cannot share one device; transport udp has a socket for "
                             "each");
  }
}

}  // namespace

natagg_options default_options() {
  const StreamConfig stream;
  natagg_options options{};
  options.size = sizeof options;
  options.world = stream.world;
  options.window = stream.window;
  options.connect_timeout_ms = 10'000;
  options.operation_timeout_ms = 30'000;
  options.heartbeat_ms = static_cast<std::uint32_t>(stream.heartbeat_interval / kMillisecond);
  options.aggregator_timeout_ms =
      static_cast<std::uint32_t>(stream.aggregator_timeout / kMillisecond);
  options.multicast = 1;
  options.io_threads = 1;
  options.gso = 1;
  return options;
}

WorkerConfig make_config(const natagg_options& options) {
  WorkerConfig config;
  config.stream = make_stream_config(options);
  config.udp.aggregators = config.stream.aggregators;
  config.udp.local = parse_local(options.local == nullptr ? "" : options.local);
  config.udp.multicast = options.multicast != 0;
  config.udp.gso = options.gso != 0;
  check_range<std::uint32_t>("busy_poll_us", options.busy_poll_us, 0, kMostBusyPoll_us);
  config.busy_poll = Time{options.busy_poll_us} * kMicrosecond;
  set_transport(options, config);
  set_io_threads(options, config);
  config.connect_timeout = milliseconds("connect_timeout_ms", options.connect_timeout_ms);
  config.operation_timeout = milliseconds("operation_timeout_ms", options.operation_timeout_ms);
  check_range<std::uint64_t>("receive_buffer_bytes", options.receive_buffer_bytes, 0,
                             std::numeric_limits<std::int32_t>::max() / 2);
  config.receive_buffer_bytes = options.receive_buffer_bytes;
  check_range("transmit_loss", options.transmit_loss, 0.0, 1.0);
  check_range("receive_loss", options.receive_loss, 0.0, 1.0);
  config.transmit_loss = options.transmit_loss;
  config.receive_loss = options.receive_loss;
  config.loss_seed = options.loss_seed;
  if (options.record != nullptr) config.record = options.record;
  return config;
}

}  // namespace natagg::worker
