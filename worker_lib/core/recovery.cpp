// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/recovery.hpp"

#include <algorithm>

#include "worker_lib/core/failures.hpp"

namespace natagg::worker {

std::optional<Failure> Recovery::watch(Time now) {
  const auto places = static_cast<std::uint16_t>(channels_.size());
  for (std::uint16_t place = 0; place < places; ++place) {
    // What was never ready has the connect deadline.
    if (!channels_[place]) continue;
    if (auto failure = watch(place, now)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Recovery::watch(std::uint16_t place, Time now) {
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

void Recovery::restart(std::uint16_t place, Time now) {
  join_again(place, joinings_[place].moves(), now);
}

bool Recovery::on_move(const proto::MoveBody& body, const proto::Endpoint& source, Time now) {
  const std::uint16_t place = body.shard.value();
  const std::uint16_t moves = body.moves.value();
  // A greater number of moves wins, so that ranks that found other aggregators silent end up at the
  // same one.
  if (place >= joinings_.size() || moves <= joinings_[place].moves()) return false;
  const bool ours = std::any_of(joinings_.begin(), joinings_.end(), [&](const Joining& joining) {
    return joining.members() != 0 && joining.members() == body.members.value();
  });
  if (!ours || source != pool_.shard(place, moves)) return false;
  join_again(place, moves, now);
  return true;
}

void Recovery::join_again(std::uint16_t place, std::uint16_t moves, Time now) {
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
  const proto::Endpoint shard = pool_.shard(place, moves);
  if (guard_) guard_->renew(shard, place);
  joinings_[place].join_again(shard, lost, moves, now);
}

/// For how long nothing has been heard of the shard that has `place`.
Time Recovery::quiet(std::uint16_t place, Time now) const {
  const Joining& joining = joinings_[place];
  return now - (joining.ready() ? channels_[place]->silent_since() : joining.silent_since());
}

/// The least number of moves that brings `place` to another aggregator that is not silent too.
std::optional<std::uint16_t> Recovery::next_move(std::uint16_t place, Time now) const {
  const unsigned moves = joinings_[place].moves();
  for (unsigned step = 1; step < pool_.aggregators() && moves + step <= 0xFFFF; ++step) {
    if (!is_silent(pool_.aggregator(place, moves + step), now)) {
      return static_cast<std::uint16_t>(moves + step);
    }
  }
  return std::nullopt;
}

bool Recovery::is_silent(std::size_t aggregator, Time now) const {
  const auto places = static_cast<std::uint16_t>(joinings_.size());
  for (std::uint16_t place = 0; place < places; ++place) {
    if (pool_.aggregator(place, joinings_[place].moves()) == aggregator &&
        quiet(place, now) >= config_.failover_timeout / 2) {
      return true;
    }
  }
  return false;
}

}  // namespace natagg::worker
