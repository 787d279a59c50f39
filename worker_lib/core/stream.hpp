// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A stream is the whole worker protocol for one rank of one job, over the shards of its pool of
// aggregators, as a state machine: datagrams, submissions and the time go in, datagrams to send
// and completions come out. It knows no socket, thread or clock. One thread at a time.
//
// A worker that needs more than one thread has several streams, its lanes, each for some of the
// shards. All are given the same submissions; each runs the chunks of its own shards, and an
// operation has ended when it has in every lane.
//
// Life: discover each aggregator's shards and the path's packet size (HELLO, OFFER), join every
// shard (JOIN, WELCOME), then run operations (DATA, RESULT) until close() or a failure. A shard
// that forgot the session or fell silent is joined again, there or at another aggregator of the
// pool, and the operations go on. A failure is final: it completes every operation in flight, and
// the job must be joined anew.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "natagg/status.h"
#include "proto/authentication.hpp"
#include "proto/endpoint.hpp"
#include "proto/kernels.hpp"
#include "proto/operation.hpp"
#include "proto/packet.hpp"
#include "worker_lib/core/time.hpp"

namespace natagg::worker {

/// Of the pool's shards, in the order of their addresses, the `index`-th of `count` equal parts.
struct LaneConfig {
  std::uint16_t index = 0;
  std::uint16_t count = 1;    // where the pool has fewer shards, there are as many lanes
  std::uint64_t members = 0;  // StreamStats::members of an earlier lane; 0: there is none
};

struct StreamConfig {
  std::vector<proto::Endpoint> aggregators;  // the pool: each one's first shard; same on all ranks
  std::uint32_t job = 0;
  std::uint16_t rank = 0;
  std::uint16_t world = 1;
  std::uint64_t seed = 0;  // of the job's randomness; same on all ranks
  proto::Rounding rounding = proto::Rounding::kStochastic;
  int shift = 0;                // see nat8::kMaxShift; same on all ranks
  std::uint64_t instance = 1;   // random in production; tells this object from a restarted one
  std::uint16_t values = 0;     // a packet; 0: the most that every path carries
  std::size_t mtu = 1500;       // of this host's link towards the aggregators
  std::uint16_t window = 256;   // proposed slots a shard, a power of two
  std::size_t in_flight = 256;  // packets under way in all, at least 1: what receive buffers hold
  bool segmentation = false;    // the host can send several datagrams as one packet
  // How long a chunk of an operation that takes partial results may wait for ranks, in whole ms up
  // to 65,535; 0: for all of them. Same on all ranks.
  Time straggler_deadline = 0;
  std::uint16_t quorum = 0;  // ranks that a partial result has at least; 0: more than half; same
  Time connect_deadline = kNever;
  Time min_rto = 5'000'000;
  Time max_rto = 500'000'000;
  Time heartbeat_interval = 100'000'000;
  Time failover_timeout = 1'000'000'000;    // silence after which a shard's place moves to another
  Time rejoin_timeout = 1'500'000'000;      // for all ranks to join again, once one has
  Time aggregator_timeout = 5'000'000'000;  // silence of a shard that nothing can replace
  std::uint32_t first_operation = 0;
  // Each lane after the first starts when the one before is ready, with the values that it agreed
  // on, and with the same instance: so all jobs still join shards in one order.
  LaneConfig lane{};
  const Kernels* kernels = nullptr;            // nullptr: default_kernels()
  std::shared_ptr<const proto::JobKey> key{};  // nullptr: the job is not authenticated
  proto::Secret entropy{};  // random in production, with a key; what makes this worker's nonces new
};

/// One datagram to send. Its bytes stay valid and unchanged until the stream's next call.
struct Outgoing {
  proto::Endpoint to;
  std::span<const std::byte> datagram;
  // It may leave in one large packet with what is sent before and after it, which is cut into these
  // datagrams on its way (UDP segmentation offload).
  bool segmentable = false;
};

/// An all-reduce. `in` and `out` hold operation.length values of operation.type, may be equal but
/// not overlap otherwise, and stay the stream's until the completion is polled.
struct Submission {
  proto::Operation operation;
  const void* in = nullptr;
  void* out = nullptr;
  Time deadline = kNever;
};

/// What ranks an operation's results are without.
struct PartialReport {
  std::uint64_t chunks = 0;  // of the operation at this stream's shards
  std::uint64_t partial_chunks = 0;
  std::uint16_t least_ranks = 0;  // that any chunk has; the world where none is partial
  double variance_inflation = 1;  // world over ranks, the mean of all values
  std::array<std::uint64_t, proto::kMaxPartialWorld / 64>
      missing{};  // bit r % 64 of r / 64: rank r
};

/// A MOVE, as a stream got it that does not serve the place.
struct ForeignMove {
  proto::MoveBody body;
  proto::Endpoint source;
};

struct Completion {
  std::uint64_t id = 0;  // as submit() returned it
  natagg_status status = NATAGG_OK;
  PartialReport partial{};  // of those that take partial results, where the status is NATAGG_OK
};

/// Why a stream failed. `message` names rank, chunk, aggregator and numbers.
struct Failure {
  natagg_status status = NATAGG_OK;
  int rank = -1;  // the rank at fault, -1 when it is none
  std::string message;
  std::optional<proto::AbortBody> mismatch{};  // who submitted what, where the ranks disagree
};

/// Whether datagrams may leave as one packet that is cut up on its way. Of several, the greatest
/// tells most.
enum class Segmentation : std::uint8_t {
  kOff,         // this host cannot, or must not
  kProbing,     // an aggregator is being asked that way
  kNotCarried,  // and has not answered, or later ones were lost: they arrive whole or not at all
  kCarried,     // and has answered
};

struct StreamStats {
  std::uint64_t data_packets = 0;  // DATA sent, with retransmissions
  std::uint64_t retransmissions = 0;
  std::uint64_t result_packets = 0;  // RESULT received and used
  std::uint64_t duplicate_results = 0;
  std::uint64_t rejected_packets = 0;  // malformed, foreign, stale
  std::uint64_t bytes_sent = 0;        // UDP payload, all types
  std::uint64_t bytes_received = 0;
  std::uint64_t multicast_results = 0;  // of the result_packets, those that came by multicast
  std::uint64_t resumed_sessions = 0;   // with shards that had restarted or moved
  Time smoothed_rtt = 0;                // largest of the shards'
  nat8::Tally encoded;                  // of this rank's input values
  std::uint16_t values = 0;             // agreed a packet
  std::uint16_t window = 0;             // agreed slots, the least of the shards'
  std::uint16_t shards = 0;             // of the whole pool
  std::uint64_t members = 0;            // of the job: a digest of all ranks' instances
  Segmentation segmentation = Segmentation::kOff;  // on the way to any aggregator
};

class Stream {
 public:
  enum class State : std::uint8_t { kConnecting, kReady, kClosing, kClosed, kFailed };

  /// Throws std::invalid_argument naming the field when `config` is out of range.
  Stream(StreamConfig config, Time now);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  [[nodiscard]] State state() const;

  /// Why state() is kFailed.
  [[nodiscard]] const Failure& failure() const;

  /// Queues an operation and returns its id; ids count up from 0. Allowed in every state: before
  /// kReady it waits, after kFailed or close() it completes at once with that status. Length 0
  /// completes at once.
  std::uint64_t submit(const Submission& submission);

  /// Takes one datagram that arrived from `source`. `congested`: its IP packet was marked
  /// "congestion experienced" (RFC 3168).
  void receive(std::span<const std::byte> datagram, const proto::Endpoint& source, Time now,
               bool congested = false);

  /// Fills `out` with datagrams to send now and returns how many; call again until 0. Also lets
  /// time pass: retransmissions, heartbeats and deadlines happen here. Receive everything that
  /// has arrived first, so that a process that was descheduled does not retransmit in vain.
  [[nodiscard]] std::size_t transmit(Time now, std::span<Outgoing> out);

  /// When transmit() next has something to do, unless a datagram or submission comes first.
  [[nodiscard]] Time next_event() const;

  /// The next operation that has ended, if any.
  [[nodiscard]] std::optional<Completion> poll_completion();

  /// Multicast groups to listen to; it grows while connecting. Datagrams from them enter through
  /// receive() with the aggregator's own address as source, like all others.
  [[nodiscard]] std::span<const proto::Endpoint> groups() const;

  /// What the other lanes of this worker are to be told, if anything.
  [[nodiscard]] std::optional<ForeignMove> poll_foreign_move();

  /// Another lane got this; of no effect where this one does not serve the place either.
  void receive(const ForeignMove& move, Time now);

  /// Another lane has failed: fails for the same reason, unless it has failed or is closed.
  void fail(const Failure& failure, Time now);

  /// Leaves the job: pending operations complete with NATAGG_CLOSED, aggregators are told, and
  /// the state becomes kClosed when they confirm or after a short wait.
  void close(Time now);

  [[nodiscard]] const StreamStats& stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace natagg::worker
