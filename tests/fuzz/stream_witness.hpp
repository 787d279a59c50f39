// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A worker's stream, and what must hold whatever it receives:
// - what it sends is well formed, to an aggregator of its pool, and of a bounded number;
// - once it has nothing to send, its next event is later than now;
// - each operation completes once, none before its chunks have results or the stream has ended, and
//   no value is written beyond its output;
// - what it keeps of aggregators is bounded;
// - of a job that has a key, only what a shard has sealed is taken, bit by bit, from that shard and
//   once; all else is rejected, and changes nothing; and what it sends is sealed;
// - in the end, whoever is silent, it is closed or has failed with a reason, and so have all
//   operations.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "fenced.hpp"
#include "key_shards.hpp"
#include "proto/packet.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::fuzz {

struct SentData {
  proto::Endpoint to;
  proto::Header header;
};

class StreamWitness {
 public:
  StreamWitness(const worker::StreamConfig& config, worker::Time start);

  void receive(std::span<const std::byte> datagram, const proto::Endpoint& source);
  void submit(std::size_t length, worker::Time timeout);
  void transmit();
  void pass(worker::Time time);
  void pass_to_next_event();
  void close();

  /// Nobody answers any more: every deadline passes.
  void expect_end();

  /// One of the latest DATA packets, nullptr before the first.
  [[nodiscard]] const SentData* sent_data(std::size_t which) const;

  /// The shards that have the key; null where the job has none.
  [[nodiscard]] KeyShards* shards() { return shards_ ? &*shards_ : nullptr; }

  /// Values of the longest HELLO.
  [[nodiscard]] std::size_t values_asked() const;

 private:
  struct Operation {
    std::vector<float> values;  // with a guard behind
    std::size_t length = 0;
    bool completed = false;
  };

  void look_at(const worker::Outgoing& outgoing);
  void check_key(std::span<const std::byte> datagram, const proto::Endpoint& source, bool taken);
  void collect();

  worker::StreamConfig config_;
  worker::Stream stream_;
  worker::Time now_;
  Fenced memory_;
  std::vector<std::unique_ptr<Operation>> operations_;
  std::deque<SentData> sent_;
  std::optional<KeyShards> shards_;
};

}  // namespace natagg::fuzz
