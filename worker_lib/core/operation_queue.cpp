// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/operation_queue.hpp"

#include <algorithm>
#include <utility>

namespace natagg::worker {

bool OperationQueue::submit(const Submission& submission) {
  PendingOperation operation{.submission = submission,
                             .id = next_id(),
                             .fingerprint = proto::fingerprint(submission.operation),
                             .index = next_index_++,
                             .ended = submission.operation.length == 0,
                             .partial = {}};
  if (layout_.values != 0) cut(operation);
  operations_.push_back(operation);
  if (operation.ended) {
    pop_ended();
    return true;
  }
  earliest_deadline_ = std::min(earliest_deadline_, submission.deadline);
  return false;
}

std::vector<std::uint64_t> OperationQueue::set_layout(Layout layout) {
  layout_ = std::move(layout);
  std::vector<std::uint64_t> ended;
  for (PendingOperation& operation : operations_) {
    const bool before = operation.ended;
    cut(operation);
    if (operation.ended && !before) ended.push_back(operation.id);
  }
  pop_ended();
  return ended;
}

void OperationQueue::cut(PendingOperation& operation) {
  const std::uint64_t length = operation.submission.operation.length;
  const std::uint16_t values = layout_.values;
  operation.first_chunk = next_chunk_;
  operation.chunks = length / values + (length % values != 0 ? 1 : 0);
  next_chunk_ += operation.chunks;
  operation.own_chunks = own_chunks_before(next_chunk_) - own_chunks_before(operation.first_chunk);
  operation.remaining = operation.own_chunks;
  operation.ended |= operation.own_chunks == 0;
}

/// How many of the chunks before `number` are of this stream's shards.
std::uint64_t OperationQueue::own_chunks_before(std::uint64_t number) const {
  const std::uint64_t rounds = number / layout_.shards;
  const std::uint64_t rest = number % layout_.shards;
  const auto begun =
      std::ranges::count_if(layout_.places, [rest](std::uint16_t place) { return place < rest; });
  return rounds * layout_.places.size() + static_cast<std::uint64_t>(begun);
}

std::optional<ChunkRange> OperationQueue::chunk(std::uint64_t number, std::uint64_t& hint) {
  if (number >= next_chunk_) return std::nullopt;
  hint = std::max(hint, front_id_);
  while (number >= at(hint).first_chunk + at(hint).chunks) ++hint;
  PendingOperation& operation = at(hint);
  const std::uint64_t element = (number - operation.first_chunk) * layout_.values;
  const std::uint64_t rest = operation.submission.operation.length - element;
  return ChunkRange{
      .operation = &operation,
      .element = element,
      .count = static_cast<std::uint16_t>(std::min<std::uint64_t>(rest, layout_.values))};
}

std::optional<Completion> OperationQueue::complete_chunk(std::uint64_t id) {
  PendingOperation& operation = at(id);
  if (--operation.remaining != 0) return std::nullopt;
  operation.ended = true;
  Completion completion{.id = id, .partial = operation.partial};
  completion.partial.chunks = operation.own_chunks;
  pop_ended();
  return completion;
}

void OperationQueue::note_partial(std::uint64_t id, std::uint16_t count,
                                  std::span<const std::uint8_t> ranks, std::uint16_t world) {
  PendingOperation& operation = at(id);
  PartialReport& report = operation.partial;
  const std::uint16_t present = proto::count_ranks(ranks, world);
  report.least_ranks = report.partial_chunks == 0 ? present : std::min(report.least_ranks, present);
  ++report.partial_chunks;
  const auto length = static_cast<double>(operation.submission.operation.length);
  report.variance_inflation +=
      static_cast<double>(count) / length * (static_cast<double>(world) / present - 1);
  for (std::size_t rank = 0; rank < world; ++rank) {
    if (!proto::holds(ranks, rank)) report.missing[rank / 64] |= std::uint64_t{1} << (rank % 64);
  }
}

const PendingOperation* OperationQueue::overdue(Time now) {
  if (now < earliest_deadline_) return nullptr;
  earliest_deadline_ = kNever;
  const PendingOperation* overdue = nullptr;
  for (const PendingOperation& operation : operations_) {
    if (operation.ended) continue;
    const Time deadline = operation.submission.deadline;
    earliest_deadline_ = std::min(earliest_deadline_, deadline);
    if (overdue == nullptr && deadline <= now) overdue = &operation;
  }
  return overdue;
}

void OperationQueue::pop_ended() {
  while (!operations_.empty() && operations_.front().ended) {
    operations_.pop_front();
    ++front_id_;
  }
  if (operations_.empty()) earliest_deadline_ = kNever;
}

}  // namespace natagg::worker
