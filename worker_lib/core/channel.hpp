// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One shard's share of a worker's traffic once the session is ready: it sends chunks in order
// within a window, finds out which were lost, and takes in results.
//
// Loss is found in two ways. When a result arrives and three chunks or more were sent between a
// silent one and it, the silent one is lost. When nothing arrives for a time-out, the oldest alone
// is sent again, because most often the others merely wait for a slow rank; the aggregator answers
// that with PENDING, which confirms that it has the chunk and names the rank it waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker_lib/core/congestion_window.hpp"
#include "worker_lib/core/flight_list.hpp"
#include "worker_lib/core/operation_queue.hpp"
#include "worker_lib/core/rtt.hpp"
#include "worker_lib/core/sink.hpp"

namespace natagg::worker {

/// What joining one shard agreed on.
struct ShardSession {
  proto::Endpoint endpoint;
  std::uint32_t epoch = 0;
  std::uint32_t first_sequence = 0;
  std::uint16_t window = 0;
  std::uint16_t values = 0;
  std::uint16_t index = 0;   // of the shard in the pool ...
  std::uint16_t shards = 0;  // ... of so many
};

class Channel {
 public:
  /// All references outlive the channel.
  Channel(const StreamConfig& config, const Kernels& kernels, const ShardSession& session,
          OperationQueue& operations, StreamStats& stats, Time now);

  /// Puts what is due into `sink`: lost chunks, up to `room` new ones, a heartbeat.
  void transmit(Time now, std::size_t room, Sink& sink);
  [[nodiscard]] Time next_event() const;

  /// A valid RESULT of this session; the id of the operation that it completes, if any.
  [[nodiscard]] std::optional<std::uint64_t> on_result(const proto::Header& header,
                                                       std::span<const std::uint8_t> bytes,
                                                       Time now);
  void on_pending(const proto::Header& header, const proto::PendingBody& body);

  /// Any packet of this session arrived.
  void heard(Time now) { last_heard_ = now; }

  /// This process was not running for `gap`, which must not be taken for the others' silence.
  void forgive(Time gap) { last_heard_ += gap; }

  [[nodiscard]] Time silent_since() const { return last_heard_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  [[nodiscard]] Time smoothed_rtt() const { return rtt_.smoothed(); }
  [[nodiscard]] const ShardSession& session() const { return session_; }

  /// The oldest chunk of an operation that is under way here, or nullptr.
  [[nodiscard]] const Flight* oldest_of(std::uint64_t operation_id) const;

 private:
  [[nodiscard]] std::uint16_t ring_index(std::uint64_t number) const {
    return static_cast<std::uint16_t>(
        (session_.first_sequence + static_cast<std::uint32_t>(number)) & (session_.window - 1U));
  }
  [[nodiscard]] std::byte* datagram(std::uint16_t i) {
    return datagrams_.data() + i * datagram_size_;
  }
  [[nodiscard]] Time timeout() const;
  [[nodiscard]] FlightList& list(Flight::State state);
  void move(std::uint16_t i, Flight::State state);
  void time_out(Time now);
  void find_lost(std::uint64_t order, Time now);
  void send_again(std::uint16_t i, Time now, Sink& sink);
  void send_next(const ChunkRange& range, Time now, Sink& sink);
  void send_heartbeat(Time now, Sink& sink);

  const StreamConfig& config_;
  const Kernels& kernels_;
  ShardSession session_;
  OperationQueue& operations_;
  StreamStats& stats_;

  RttEstimator rtt_;
  CongestionWindow window_;
  std::vector<Flight> ring_;
  std::vector<std::byte> datagrams_;  // as sent, one a ring place, for retransmission
  std::size_t datagram_size_;
  proto::Header heartbeat_;
  FlightList sent_list_;
  FlightList confirmed_list_;
  FlightList lost_list_;

  std::uint64_t oldest_ = 0;  // number, on this shard, of the first chunk without a result
  std::uint64_t next_ = 0;    // number of the next chunk to send
  std::uint64_t order_ = 0;
  std::uint64_t hint_ = 0;  // OperationQueue::chunk()'s
  std::size_t in_flight_ = 0;
  Time last_progress_;
  Time last_timeout_;
  Time last_sent_;
  Time last_heartbeat_;
  Time last_heard_;
};

}  // namespace natagg::worker
