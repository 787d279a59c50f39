// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/core/straggler_watch.hpp"

namespace natagg::aggregator {

void StragglerWatch::start(std::uint32_t sequence, Time now) {
  const std::uint32_t i = sequence & mask_;
  entries_[i] = {.opened = now,
                 .sequence = sequence,
                 .previous = tail_,
                 .next = kEnd,
                 .state = State::kWaiting};
  (tail_ == kEnd ? head_ : entries_[tail_].next) = i;
  tail_ = i;
}

void StragglerWatch::stop(std::uint32_t sequence) {
  Entry& entry = entries_[sequence & mask_];
  if (entry.state == State::kWaiting) unlink(entry);
  entry.state = State::kIdle;
}

std::optional<std::uint32_t> StragglerWatch::take_overdue(Time now) {
  if (head_ == kEnd) return std::nullopt;
  Entry& entry = entries_[head_];
  if (now - entry.opened < deadline_) return std::nullopt;
  unlink(entry);
  entry.state = State::kOverdue;
  return entry.sequence;
}

void StragglerWatch::forgive(Time gap) {
  for (Entry& entry : entries_) entry.opened += gap;
}

void StragglerWatch::unlink(const Entry& entry) {
  (entry.previous == kEnd ? head_ : entries_[entry.previous].next) = entry.next;
  (entry.next == kEnd ? tail_ : entries_[entry.next].previous) = entry.previous;
}

}  // namespace natagg::aggregator
