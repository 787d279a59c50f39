// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/connecting.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "worker_lib/core/failures.hpp"

namespace natagg::worker {
namespace {

using proto::Endpoint;

/// How long an aggregator that says, without proof, that it does not take this job's key may yet
/// turn out not to have said so.
constexpr Time kHintPatience = 1'000'000'000;

}  // namespace

Connecting::Connecting(const StreamConfig& config, std::vector<Joining>& joinings,
                       std::vector<std::unique_ptr<Channel>>& channels, Recovery& recovery,
                       Time now)
    : config_(config), joinings_(joinings), channels_(channels), recovery_(recovery) {
  for (const Endpoint& aggregator : config_.aggregators) {
    discoveries_.emplace_back(config_, aggregator, now);
  }
}

std::optional<Failure> Connecting::transmit(Time now, Sink& sink) {
  const bool hopeless = hint_ && now - hint_->since >= kHintPatience;
  if (now >= config_.connect_deadline || hopeless) return timed_out(now);
  if (auto failure = recovery_.watch(now)) return failure;
  if (joinings_.empty()) {
    for (Discovery& discovery : discoveries_) discovery.transmit(now, sink);
    const bool settled =
        std::all_of(discoveries_.begin(), discoveries_.end(),
                    [now](const Discovery& discovery) { return discovery.settled(now); });
    if (!settled) return std::nullopt;
    if (auto failure = begin_joining(now)) return failure;
  }
  probe_segmentation(now, sink);  // before JOIN, so that it is answered first
  const std::size_t asked = count_asked();
  for (std::size_t i = 0; i < joinings_.size(); ++i) {
    if (may_ask(i, asked)) joinings_[i].transmit(now, sink);
  }
  return std::nullopt;
}

/// How many of the places in order may be asked: up to the first that has not taken this rank in.
std::size_t Connecting::count_asked() const {
  const auto last = std::ranges::find_if(
      joinings_, [](const Joining& joining) { return !joining.admitted() && !joining.resumes(); });
  return static_cast<std::size_t>(last - joinings_.begin()) + (last != joinings_.end() ? 1 : 0);
}

/// Where a session is to be resumed, the others wait for this place alone.
bool Connecting::may_ask(std::size_t i, std::size_t asked) const {
  return i < asked || joinings_[i].resumes();
}

Time Connecting::next_event() const {
  Time next = config_.connect_deadline;
  if (hint_) next = std::min(next, hint_->since + kHintPatience);
  const std::size_t asked = count_asked();
  for (std::size_t i = 0; i < joinings_.size(); ++i) {
    if (may_ask(i, asked)) next = std::min(next, joinings_[i].next_event());
  }
  if (!joinings_.empty()) return std::min(next, next_probe());
  for (const Discovery& discovery : discoveries_) next = std::min(next, discovery.next_event());
  return next;
}

void Connecting::probe_segmentation(Time now, Sink& sink) {
  for (Discovery& discovery : discoveries_) discovery.probe_segmentation(now, sink);
}

Time Connecting::next_probe() const {
  Time next = kNever;
  for (const Discovery& discovery : discoveries_) {
    next = std::min(next, discovery.segmentation().next_event());
  }
  return next;
}

/// Of the shard's aggregator: all its shards are behind one address.
Segmentation Connecting::segmentation(const Endpoint& shard) const {
  const auto found = std::ranges::find_if(discoveries_, [&](const Discovery& discovery) {
    return discovery.aggregator().address == shard.address;
  });
  return found == discoveries_.end() ? Segmentation::kOff : found->segmentation().state();
}

bool Connecting::on_offer(std::span<const std::byte> datagram, const Endpoint& source, Time now) {
  const auto discovery =
      std::find_if(discoveries_.begin(), discoveries_.end(),
                   [&](const Discovery& candidate) { return candidate.aggregator() == source; });
  if (discovery == discoveries_.end()) return false;
  discovery->on_offer(proto::read_body<proto::OfferBody>(datagram), datagram.size(), now);
  return true;
}

bool Connecting::concerns(const proto::RefuseBody& body, const Endpoint& source) const {
  // Once shards are joined, only what names the place that is joined counts.
  return joinings_.empty() && is_asked(source) && body.instance.value() == config_.instance;
}

Failure Connecting::refused(const proto::RefuseBody& body, const Endpoint& source) const {
  if (body.reason == proto::RefuseReason::kKeyRequired) {
    return {NATAGG_REFUSED, -1, key_refused(source, config_.job, body.reason)};
  }
  return {NATAGG_REFUSED, -1,
          "aggregator " + to_string(source) + " refuses: " + std::string(to_string(body.reason)) +
              ": " + std::to_string(body.yours.value()) + " here, its own is " +
              std::to_string(body.ours.value())};
}

void Connecting::take_hint(const proto::RefuseBody& body, const Endpoint& source, Time now) {
  if (hint_ || body.instance.value() != config_.instance) return;
  const bool unproven =
      std::any_of(discoveries_.begin(), discoveries_.end(), [&](const Discovery& discovery) {
        return discovery.aggregator() == source && !discovery.offered();
      });
  if (!unproven) return;
  hint_ = Hint{source, key_refused(source, config_.job, body.reason), now};
}

std::optional<Failure> Connecting::agree(StreamStats& stats) const {
  stats.values = proto::kMaxValues;
  stats.window = 0xFFFF;
  stats.shards = joinings_.front().session().shards;
  stats.members = joinings_.front().members();
  if (config_.lane.members != 0 && stats.members != config_.lane.members) {
    return Failure{NATAGG_REFUSED, -1,
                   "aggregator " + to_string(joinings_.front().shard()) +
                       " has other workers in job " + std::to_string(config_.job) +
                       " than those before it: two sets of workers use its number"};
  }
  for (const Joining& joining : joinings_) {
    if (joining.members() != stats.members) {
      return Failure{NATAGG_REFUSED, -1,
                     "aggregators " + to_string(joinings_.front().shard()) + " and " +
                         to_string(joining.shard()) + " have different workers in job " +
                         std::to_string(config_.job) + ": two sets of workers use its number"};
    }
    stats.values = std::min(stats.values, joining.session().values);
    stats.window = std::min(stats.window, joining.session().window);
  }
  return std::nullopt;
}

Failure Connecting::timed_out(Time now) const {
  if (hint_) return {NATAGG_REFUSED, -1, hint_->text};
  for (const Joining& joining : joinings_) {
    if (!joining.ready()) return {NATAGG_TIMED_OUT, joining.missing_rank(), joining.describe()};
  }
  for (const Discovery& discovery : discoveries_) {
    if (!discovery.settled(now)) return {NATAGG_TIMED_OUT, -1, discovery.describe()};
  }
  return {NATAGG_TIMED_OUT, -1, "connecting took too long"};
}

bool Connecting::is_asked(const Endpoint& aggregator) const {
  return std::any_of(discoveries_.begin(), discoveries_.end(), [&](const Discovery& discovery) {
    return discovery.aggregator() == aggregator;
  });
}

/// What keeps the pool's shards from being told apart or counted; empty when nothing does.
std::string Connecting::pool_problem() const {
  std::size_t shards = 0;
  for (auto a = discoveries_.begin(); a != discoveries_.end(); ++a) {
    shards += a->shards();
    const int first = a->aggregator().port;
    const auto overlaps = [&](const Discovery& b) {
      const int other = b.aggregator().port;
      return a->aggregator().address == b.aggregator().address && first < other + b.shards() &&
             other < first + a->shards();
    };
    const auto b = std::find_if(discoveries_.begin(), a, overlaps);
    if (b == a) continue;
    return "aggregators: " + to_string(b->aggregator()) + " and " + to_string(a->aggregator()) +
           " share shards, for the one has " + std::to_string(b->shards()) + " and the other " +
           std::to_string(a->shards()) + " on consecutive ports";
  }
  if (shards <= proto::kMaxWorld) return {};
  return "aggregators: they have " + std::to_string(shards) + " shards, a pool can have 65535";
}

/// What all paths and aggregators carry.
Joining::Proposal Connecting::proposal() const {
  Joining::Proposal proposal{.values = proto::kMaxValues, .window = config_.window};
  for (const Discovery& discovery : discoveries_) {
    proposal.values = std::min(proposal.values, discovery.values());
    proposal.window = std::min(proposal.window, std::bit_floor(discovery.window()));
    proposal.shards = static_cast<std::uint16_t>(proposal.shards + discovery.shards());
  }
  if (config_.values != 0) {
    proposal.values = config_.values;  // refused where it is too many
  } else if (config_.straggler_deadline != 0) {
    proposal.values = static_cast<std::uint16_t>(proto::partial_values(
        proposal.values, config_.world, config_.key ? proto::Keys::kSome : proto::Keys::kNone));
  }
  return proposal;
}

/// The shards of the whole pool, in the order in which jobs join them.
std::vector<Connecting::Place> Connecting::places() const {
  std::vector<Place> places;
  std::uint16_t index = 0;
  for (const Discovery& discovery : discoveries_) {
    for (std::uint16_t i = 0; i < discovery.shards(); ++i) {
      Endpoint shard = discovery.aggregator();
      shard.port = static_cast<std::uint16_t>(shard.port + i);
      places.push_back({shard, index++});
    }
  }
  std::ranges::sort(places, {}, [](const Place& place) {
    return std::pair(place.shard.address, place.shard.port);
  });
  return places;
}

std::optional<Failure> Connecting::begin_joining(Time now) {
  if (const std::string problem = pool_problem(); !problem.empty()) {
    return Failure{NATAGG_INVALID_ARGUMENT, -1, problem};
  }
  Joining::Proposal proposed = proposal();
  if (config_.straggler_deadline != 0 && proposed.values == 0) {
    return no_room_for_ranks(config_.world);
  }
  const std::vector<Place> all = places();
  const std::size_t lanes = std::min<std::size_t>(config_.lane.count, all.size());
  const std::size_t lane = config_.lane.index;
  if (lane >= lanes) {
    return Failure{
        NATAGG_INVALID_ARGUMENT, -1,
        "lane: is " + std::to_string(lane) + ", the pool has " + std::to_string(lanes) + " shards"};
  }
  const std::size_t first = all.size() * lane / lanes;
  const std::size_t end = all.size() * (lane + 1) / lanes;
  for (const Place& place : std::span(all).subspan(first, end - first)) {
    proposed.index = place.index;
    joinings_.emplace_back(config_, place.shard, proposed, now);
  }
  for (const Discovery& discovery : discoveries_) {
    recovery_.add(discovery.aggregator(), discovery.shards());
  }
  channels_.resize(joinings_.size());
  return std::nullopt;
}

}  // namespace natagg::worker
