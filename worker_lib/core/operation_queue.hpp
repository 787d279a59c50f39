// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The operations of a stream in the order of submission, cut into chunks. Chunks are numbered
// through all operations; chunk g goes to shard g mod m as that shard's chunk g / m, so every
// operation, however short, spreads evenly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "worker_lib/core/stream.hpp"

namespace natagg::worker {

struct PendingOperation {
  Submission submission;
  std::uint64_t id = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t first_chunk = 0;  // of all operations' chunks
  std::uint64_t chunks = 0;
  std::uint64_t own_chunks = 0;  // of shards that this stream serves
  std::uint64_t remaining = 0;   // of the own chunks, those without a result
  std::uint32_t index = 0;       // on the wire
  bool ended = false;
  PartialReport partial;
};

/// A part of an operation that one packet carries.
struct ChunkRange {
  PendingOperation* operation = nullptr;
  std::uint64_t element = 0;
  std::uint16_t count = 0;
};

/// How operations are cut, and which of the chunks are the stream's.
struct Layout {
  std::uint16_t values = 0;                 // a chunk; 0: not known yet
  std::uint16_t shards = 1;                 // of the pool
  std::vector<std::uint16_t> places = {0};  // of the shards that the stream serves, each once
};

class OperationQueue {
 public:
  explicit OperationQueue(std::uint32_t first_index) : next_index_(first_index) {}

  /// Takes a submission; true when there is nothing to send for it here and it has ended.
  bool submit(const Submission& submission);

  /// Cuts what is queued, and what will be. Returns the ids of those that thereby have ended, as
  /// all their chunks are of other shards.
  [[nodiscard]] std::vector<std::uint64_t> set_layout(Layout layout);

  /// Chunk `number`, or nothing while it is not submitted. `hint` is the caller's own, 0 at
  /// first: it makes the search constant-time for growing numbers.
  [[nodiscard]] std::optional<ChunkRange> chunk(std::uint64_t number, std::uint64_t& hint);

  /// A chunk of operation `id` has its result; the operation's completion when it was the last.
  std::optional<Completion> complete_chunk(std::uint64_t id);

  /// The result of a chunk of operation `id`, of `count` values, has these ranks of `world` alone.
  void note_partial(std::uint64_t id, std::uint16_t count, std::span<const std::uint8_t> ranks,
                    std::uint16_t world);

  /// The pending operation `id`.
  [[nodiscard]] PendingOperation& at(std::uint64_t id) { return operations_[id - front_id_]; }

  [[nodiscard]] std::uint64_t next_id() const { return front_id_ + operations_.size(); }

  /// No deadline of those pending comes before this; kNever when nothing is pending. It may be that
  /// of an operation which has ended: overdue() then finds the next.
  [[nodiscard]] Time earliest_deadline() const { return earliest_deadline_; }

  /// The first pending operation whose deadline has passed, or nullptr.
  [[nodiscard]] const PendingOperation* overdue(Time now);

  /// Ends all that is pending, in order, with `end(id)` for each.
  template <typename End>
  void end_all(End end) {
    for (PendingOperation& operation : operations_) {
      if (!operation.ended) end(operation.id);
      operation.ended = true;
    }
    pop_ended();
  }

 private:
  void cut(PendingOperation& operation);
  [[nodiscard]] std::uint64_t own_chunks_before(std::uint64_t number) const;
  void pop_ended();

  std::deque<PendingOperation> operations_;
  std::uint64_t front_id_ = 0;
  std::uint64_t next_chunk_ = 0;
  std::uint32_t next_index_;
  Layout layout_;
  Time earliest_deadline_ = kNever;
};

}  // namespace natagg::worker
