// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The way from a list of aggregators to joined shards: asks each which shards it has, opens a
// joining for each shard of the pool when all have answered, and says whether the sessions that
// came of them are one job.
//
// A job joins its shards in the order of their addresses, the next when all before have taken it
// in, as all jobs do: one that waits for room at a shard holds none of a later one. So of jobs that
// compete for the last room no two can wait for each other. The lanes of a worker divide the shards
// in that order, and start in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker_lib/core/discovery.hpp"
#include "worker_lib/core/joining.hpp"
#include "worker_lib/core/recovery.hpp"

namespace natagg::worker {

class Connecting {
 public:
  /// All are the stream's and outlive this. `joinings` is filled here, all at once and in the order
  /// of addresses, as are the places of `channels` and the pool of `recovery`.
  Connecting(const StreamConfig& config, std::vector<Joining>& joinings,
             std::vector<std::unique_ptr<Channel>>& channels, Recovery& recovery, Time now);

  /// Asks and joins; why the stream fails, when it cannot connect or has had its time.
  [[nodiscard]] std::optional<Failure> transmit(Time now, Sink& sink);
  [[nodiscard]] Time next_event() const;

  /// Asks aggregators that have answered whether the path carries segmented packets; while the
  /// stream runs, too.
  void probe_segmentation(Time now, Sink& sink);
  [[nodiscard]] Time next_probe() const;
  [[nodiscard]] Segmentation segmentation(const proto::Endpoint& shard) const;

  /// An OFFER; false when nobody was asked for it.
  bool on_offer(std::span<const std::byte> datagram, const proto::Endpoint& source, Time now);

  /// Whether a REFUSE from `source` answers a HELLO.
  [[nodiscard]] bool concerns(const proto::RefuseBody& body, const proto::Endpoint& source) const;
  [[nodiscard]] Failure refused(const proto::RefuseBody& body, const proto::Endpoint& source) const;

  /// A REFUSE without proof about the job's key. Anybody who sees this worker's packets can have
  /// sent it, and a packet that arrived damaged looks like one with another key. It is believed of
  /// an aggregator that has never proved the key, when nothing comes that does.
  void take_hint(const proto::RefuseBody& body, const proto::Endpoint& source, Time now);
  /// `source` has proved the key.
  void drop_hint(const proto::Endpoint& source) {
    if (hint_ && hint_->from == source) hint_.reset();
  }

  /// Every shard is joined. Fills in the values, window and shards of `stats`; why the stream
  /// fails, when their sessions are not all of the same workers.
  [[nodiscard]] std::optional<Failure> agree(StreamStats& stats) const;

  /// What is still waited for.
  [[nodiscard]] Failure timed_out(Time now) const;

 private:
  /// A shard and its number in the pool.
  struct Place {
    proto::Endpoint shard;
    std::uint16_t index = 0;
  };

  [[nodiscard]] bool is_asked(const proto::Endpoint& aggregator) const;
  [[nodiscard]] std::string pool_problem() const;
  [[nodiscard]] Joining::Proposal proposal() const;
  [[nodiscard]] std::vector<Place> places() const;
  [[nodiscard]] std::optional<Failure> begin_joining(Time now);
  [[nodiscard]] std::size_t count_asked() const;
  [[nodiscard]] bool may_ask(std::size_t i, std::size_t asked) const;

  /// An aggregator's word, without proof, on this job's key.
  struct Hint {
    proto::Endpoint from;
    std::string text;
    Time since;
  };

  const StreamConfig& config_;
  std::vector<Joining>& joinings_;
  std::vector<std::unique_ptr<Channel>>& channels_;
  Recovery& recovery_;
  std::vector<Discovery> discoveries_;  // one an aggregator
  std::optional<Hint> hint_;
};

}  // namespace natagg::worker
