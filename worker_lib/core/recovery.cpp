// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/recovery.hpp"

#include <algorithm>

#include "worker_lib/core/failures.hpp"

namespace natagg::worker {

std::optional<Failure> Recovery::watch(Time now) {
  for (std::size_t place = 0; place < channels_.size(); ++place) {
    // What was never ready has the connect deadline.
    if (!channels_[place]) continue;
    if (auto failure = watch(place, now)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Recovery::watch(std::size_t place, Time now) {
  const Joining& joining = joinings_[place];
  const Time welcome_since = joining.welcome_since();
  // While the shard is silent itself, nobody can join.
  const bool answers = now - joining.silent_since() < config_.failover_timeout;
  if (!joining.ready() && answers && welcome_since != kNever &&
      now - welcome_since >= config_.rejoin_timeout) {
    return not_resumed(joining.describe(), joining.missing_rank());
  }
  if (quiet(place, now) < config_.failover_timeout) return std::nullopt;
  const Time silence = now - channels_[place]->silent_since();
  if (silence >= config_.aggregator_timeout) return aggregator_silent(joining.shard(), silence);
  if (const auto moves = next_move(place, now)) {
    join_again(place, *moves, now);
  } else if (joining.ready()) {
    // It may be back, with no key to say so in a way that would be believed.
    restart(place, now);
  }
  return std::nullopt;
}

void Recovery::restart(std::size_t place, Time now) {
  join_again(place, joinings_[place].moves(), now);
}

bool Recovery::serves(std::uint16_t index) const {
  return std::ranges::any_of(
      joinings_, [index](const Joining& joining) { return joining.session().index == index; });
}

bool Recovery::on_move(const proto::MoveBody& body, const proto::Endpoint& source, Time now) {
  const auto joining = std::ranges::find_if(joinings_, [&](const Joining& candidate) {
    return candidate.session().index == body.shard.value();
  });
  const std::uint16_t moves = body.moves.value();
  // A greater number of moves wins, so that ranks that found other aggregators silent end up at the
  // same one.
  if (joining == joinings_.end() || moves <= joining->moves()) return false;
  const bool ours = std::ranges::any_of(joinings_, [&](const Joining& candidate) {
    return candidate.members() != 0 && candidate.members() == body.members.value();
  });
  if (!ours || source != pool_.shard(body.shard.value(), moves)) return false;
  join_again(static_cast<std::size_t>(joining - joinings_.begin()), moves, now);
  return true;
}

void Recovery::join_again(std::size_t place, std::uint16_t moves, Time now) {
  Joining::Lost lost{.members = joinings_[place].members()};
  for (const Joining& joining : joinings_) {
    if (lost.members == 0) lost.members = joining.members();
  }
  if (Channel* channel = channels_[place].get()) {
    channel->suspend();
    lost.resume = channel->resume_point();
    lost.held = channel->held();
    lost.untouched = channel->untouched();
    lost.values = channel->session().values;
    lost.window = channel->session().window;
  }
  const proto::Endpoint shard = pool_.shard(index(place), moves);
  if (guard_) guard_->renew(shard, index(place));
  joinings_[place].join_again(shard, lost, moves, now);
}

/// For how long nothing has been heard of the shard that has `place`.
Time Recovery::quiet(std::size_t place, Time now) const {
  const Joining& joining = joinings_[place];
  return now - (joining.ready() ? channels_[place]->silent_since() : joining.silent_since());
}

/// The least number of moves that brings `place` to another aggregator that is not silent too.
std::optional<std::uint16_t> Recovery::next_move(std::size_t place, Time now) const {
  const unsigned moves = joinings_[place].moves();
  for (unsigned step = 1; step < pool_.aggregators() && moves + step <= 0xFFFF; ++step) {
    if (!is_silent(pool_.aggregator(index(place), moves + step), now)) {
      return static_cast<std::uint16_t>(moves + step);
    }
  }
  return std::nullopt;
}

bool Recovery::is_silent(std::size_t aggregator, Time now) const {
  for (std::size_t place = 0; place < joinings_.size(); ++place) {
    if (pool_.aggregator(index(place), joinings_[place].moves()) == aggregator &&
        quiet(place, now) >= config_.failover_timeout / 2) {
      return true;
    }
  }
  return false;
}

}  // namespace natagg::worker
