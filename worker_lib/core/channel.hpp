// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One shard's share of a worker's traffic once the session is ready: it sends chunks in order
// within a window, finds out which were lost, and takes in results.
//
// Which chunks were lost the shard finds out, and asks for with NACK. Of lost results this rank
// finds out itself, when those of later chunks have come. When nothing arrives for a time-out, most
// often the others merely wait for a slow rank: the oldest chunk alone is sent again, and the
// latest, from which the shard sees whether any before it was lost. It answers what it has with
// PENDING, which names the rank it waits for.
//
// When its aggregator is lost, a channel is suspended until this place of the pool has a session
// again, and resumes at the first chunk that any rank lacks: it sends again what it had sent, and
// takes in only the results that it lacks itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker_lib/core/congestion_window.hpp"
#include "worker_lib/core/flight_list.hpp"
#include "worker_lib/core/history.hpp"
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

  /// Takes what is known of the path, and says what it has learnt of it itself. Chunks leave in one
  /// packet with others only while the path carries that.
  Segmentation segmentation(Segmentation of_path);

  /// Puts what is due into `sink`: lost chunks, up to `room` new ones, a heartbeat.
  void transmit(Time now, std::size_t room, Sink& sink);
  [[nodiscard]] Time next_event() const;

  /// A valid RESULT of this session, or PARTIAL with its set of ranks; the completion of the
  /// operation that it ends, if any.
  [[nodiscard]] std::optional<Completion> on_result(const proto::Header& header,
                                                    std::span<const std::uint8_t> bytes,
                                                    std::span<const std::uint8_t> ranks, Time now);
  void on_pending(const proto::Header& header, const proto::PendingBody& body, Time now);
  void on_nack(const proto::Header& header, const proto::NackBody& body, Time now);
  /// A packet of either direction met congestion.
  void on_mark(Time now) { window_.on_mark(now, rtt_.smoothed()); }

  /// Sends nothing more until resume().
  void suspend() { suspended_ = true; }
  [[nodiscard]] bool suspended() const { return suspended_; }

  /// Goes on in `session`, of the same ranks and with the same values and window. False when it
  /// would have to send again what it no longer has, which correct ranks never need.
  [[nodiscard]] bool resume(const ShardSession& session, Time now);

  /// Sequence of the first chunk of which this rank has no result.
  [[nodiscard]] std::uint32_t resume_point() const { return sequence_of(lacking_); }
  /// Chunks from there to the last of which it has one.
  [[nodiscard]] std::uint32_t held() const {
    return static_cast<std::uint32_t>(answered_end_ - std::min(answered_end_, lacking_));
  }
  /// A chunk was answered in two sessions, and not with the same ranks and values.
  [[nodiscard]] bool contradicted() const { return contradicted_; }
  /// This rank has no result at all.
  [[nodiscard]] bool untouched() const { return untouched_; }

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
    return static_cast<std::uint16_t>(number & (session_.window - 1U));
  }
  [[nodiscard]] std::uint32_t sequence_of(std::uint64_t number) const {
    return origin_ + static_cast<std::uint32_t>(number);
  }
  /// Of the flight in ring place `i`, which is under way.
  [[nodiscard]] std::uint64_t number_of(std::uint16_t i) const {
    return oldest_ + ((i - oldest_) & (session_.window - 1U));
  }
  [[nodiscard]] bool is_under_way(std::uint32_t sequence, std::uint64_t& number) const;
  [[nodiscard]] Time timeout() const;
  [[nodiscard]] FlightList& list(Flight::State state);
  void move(std::uint16_t i, Flight::State state);
  void time_out(Time now);
  void doubt_segments(const Flight& flight);
  void trust_segments(const Flight& flight);
  void find_lost_results(std::uint64_t order, Time now);
  void ask_for_held(std::size_t most, Time now);
  void send_again(std::uint16_t i, Time now, Sink& sink);
  void encode_next(const ChunkRange& range);
  void send_next(Time now, Sink& sink);
  void start(Time now);
  void send_heartbeat(Time now, Sink& sink);
  [[nodiscard]] Time patience(const Flight& flight) const;
  [[nodiscard]] bool may_have(const proto::Header& sent, std::span<const std::uint8_t> ranks) const;
  void take(std::uint64_t number, const Flight& flight, const proto::Header& header,
            std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> ranks);
  void keep_partial(std::uint64_t number, const proto::Header& header,
                    std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> ranks);
  [[nodiscard]] bool contradicts(std::uint64_t number, std::span<const std::uint8_t> bytes,
                                 std::span<const std::uint8_t> ranks);

  const StreamConfig& config_;
  const Kernels& kernels_;
  ShardSession session_;
  OperationQueue& operations_;
  StreamStats& stats_;

  RttEstimator rtt_;
  CongestionWindow window_;
  std::vector<Flight> ring_;
  History history_;
  proto::Header heartbeat_;
  FlightList sent_list_;
  FlightList confirmed_list_;
  FlightList lost_list_;

  // Numbers of chunks count from the job's first on this shard, whatever the session.
  std::uint32_t origin_;            // sequence of chunk 0
  std::uint64_t oldest_ = 0;        // the first chunk without a result of this session
  std::uint64_t next_ = 0;          // the next chunk to send in this session
  std::uint64_t lacking_ = 0;       // the first chunk without a result of any session
  std::uint64_t encoded_ = 0;       // the next chunk to send for the first time
  std::uint64_t answered_end_ = 0;  // after the last chunk with a result of any session
  bool untouched_ = true;           // no result has come yet
  Time ask_at_ = kNever;            // when what was held back is sent again
  bool suspended_ = false;
  bool contradicted_ = false;
  bool segmentable_ = false;
  std::uint32_t lost_segmented_ = 0;  // of chunks that may have left so, more than arrived
  std::uint64_t order_ = 0;
  std::uint64_t hint_ = 0;  // OperationQueue::chunk()'s
  std::size_t in_flight_ = 0;
  Time last_progress_ = 0;
  Time last_timeout_ = 0;
  Time last_sent_ = 0;
  Time last_heartbeat_ = 0;
  Time last_heard_ = 0;
};

}  // namespace natagg::worker
