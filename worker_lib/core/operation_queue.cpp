// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/operation_queue.hpp"

#include <algorithm>

namespace natagg::worker {

bool OperationQueue::submit(const Submission& submission) {
  PendingOperation operation{.submission = submission,
                             .id = next_id(),
                             .fingerprint = proto::fingerprint(submission.operation),
                             .index = next_index_++,
                             .ended = submission.operation.length == 0,
                             .partial = {}};
  if (values_ != 0) cut(operation);
  operations_.push_back(operation);
  if (operation.ended) {
    pop_ended();
    return true;
  }
  earliest_deadline_ = std::min(earliest_deadline_, submission.deadline);
  return false;
}

void OperationQueue::set_values(std::uint16_t values) {
  values_ = values;
  for (PendingOperation& operation : operations_) cut(operation);
}

void OperationQueue::cut(PendingOperation& operation) {
  const std::uint64_t length = operation.submission.operation.length;
  operation.first_chunk = next_chunk_;
  operation.chunks = length / values_ + (length % values_ != 0 ? 1 : 0);
  operation.remaining = operation.chunks;
  next_chunk_ += operation.chunks;
}

std::optional<ChunkRange> OperationQueue::chunk(std::uint64_t number, std::uint64_t& hint) {
  if (number >= next_chunk_) return std::nullopt;
  hint = std::max(hint, front_id_);
  while (number >= at(hint).first_chunk + at(hint).chunks) ++hint;
  PendingOperation& operation = at(hint);
  const std::uint64_t element = (number - operation.first_chunk) * values_;
  const std::uint64_t rest = operation.submission.operation.length - element;
  return ChunkRange{.operation = &operation,
                    .element = element,
                    .count = static_cast<std::uint16_t>(std::min<std::uint64_t>(rest, values_))};
}

std::optional<Completion> OperationQueue::complete_chunk(std::uint64_t id) {
  PendingOperation& operation = at(id);
  if (--operation.remaining != 0) return std::nullopt;
  operation.ended = true;
  Completion completion{.id = id, .partial = operation.partial};
  completion.partial.chunks = operation.chunks;
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
