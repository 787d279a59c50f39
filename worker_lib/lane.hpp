// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A lane runs one stream over one transport in a thread of its own, which alone touches the two. It
// talks to callers and to other lanes through Requests. It sleeps until a datagram, an order or the
// stream's next event, and spins only as long as it is told to: the cores belong to whoever
// computes the gradients.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "worker_lib/core/stream.hpp"
#include "worker_lib/options.hpp"
#include "worker_lib/requests.hpp"
#include "worker_lib/transport/recording.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

class Lane {
 public:
  /// Opens the transport and starts the thread, which connects. `stream` has what make_config()
  /// leaves out but mtu and in_flight. `requests` outlives this. Throws Error.
  /// `recording`, where there is one, outlives this.
  Lane(const WorkerConfig& config, StreamConfig stream, Requests& requests, Recording* recording);

  /// Calls join().
  ~Lane();

  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// The clock of a stream's times.
  [[nodiscard]] static Time now();

  /// Waits for the thread, which ends after Requests::shutdown().
  void join();

 private:
  void start_thread();

  // The thread.
  void run() noexcept;
  void loop();
  void receive_arrived();
  void rest();
  void join_new_groups();
  void take_orders();
  void transmit();
  void publish();
  [[nodiscard]] bool done(Time now) const;
  [[nodiscard]] Time next_event() const;
  [[nodiscard]] Failure describe_failure() const;
  [[nodiscard]] WorkerStats collect_stats() const;

  Requests& requests_;
  const Time busy_poll_;

  // The thread's own, once it runs; but any thread may wake the transport.
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Stream> stream_;
  std::size_t index_ = 0;
  std::vector<Outgoing> outgoing_;
  Time poll_until_ = 0;
  Requests::Orders orders_;  // its lists are empty between turns, as are those of news_
  Requests::News news_;
  Stream::State published_ = Stream::State::kConnecting;
  std::size_t groups_seen_ = 0;
  std::size_t groups_joined_ = 0;
  std::optional<Time> closing_since_;
  WorkerStats fixed_;  // the members that do not change

  std::thread thread_;  // last: it starts when all else exists
};

}  // namespace natagg::worker
