// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/discovery.hpp"

#include <algorithm>
#include <cstring>

namespace natagg::worker {
namespace {

constexpr Time kRound = 50'000'000;
/// After the first answer, so many rounds are left for an answer to a longer question.
constexpr Time kPatience = 3 * kRound;

std::vector<std::uint16_t> candidates(const StreamConfig& config) {
  if (config.values != 0) return {config.values};
  // The host's own link, Ethernet, Ethernet in a tunnel, and what every path carries.
  const std::size_t mtus[] = {config.mtu, 1500, 1400, 576};
  std::vector<std::uint16_t> values;
  for (const std::size_t mtu : mtus) {
    const auto candidate = static_cast<std::uint16_t>(proto::values_for_mtu(mtu));
    if (candidate != 0 && (values.empty() || candidate < values.back())) {
      values.push_back(candidate);
    }
  }
  return values;
}

/// Could an aggregator at `port` be as this says? What follows trusts it.
bool is_possible(const proto::OfferBody& offer, std::uint16_t port) {
  const std::uint16_t shards = offer.shards.value();
  return shards >= 1 && shards <= proto::kMaxShards && port + shards - 1 <= 0xFFFF &&
         offer.max_values.value() >= proto::kMinValues && offer.max_window.value() >= 1;
}

}  // namespace

Discovery::Discovery(const StreamConfig& config, const proto::Endpoint& aggregator, Time now)
    : config_(config),
      aggregator_(aggregator),
      candidates_(candidates(config)),
      datagram_(proto::datagram_size(candidates_.front())),
      next_round_(now) {
  proto::Header header = proto::make_header(proto::Type::kHello);
  header.job = proto::Be32{config.job};
  header.rank = proto::Be16{config.rank};
  const proto::HelloBody body{.instance = proto::Be64{config.instance}};
  std::memcpy(datagram_.data(), &header, sizeof(header));
  std::memcpy(datagram_.data() + sizeof(header), &body, sizeof(body));
}

void Discovery::transmit(Time now, Sink& sink) {
  if (now < next_round_) return;
  while (next_candidate_ < candidates_.size() && !sink.full()) {
    const std::uint16_t values = candidates_[next_candidate_++];
    if (values <= values_) continue;
    sink.add(aggregator_, {datagram_.data(), proto::datagram_size(values)});
    ++asked_;
  }
  if (next_candidate_ == candidates_.size()) {
    next_candidate_ = 0;
    next_round_ = now + kRound;
  }
}

Time Discovery::next_event() const {
  return next_round_;
}

void Discovery::probe_segmentation(Time now, Sink& sink) {
  if (!config_.segmentation || !settled(now)) return;
  if (segmentation_.state() == Segmentation::kOff) {
    segmentation_ = SegmentationProbe(proto::datagram_size(values_), now);
  }
  segmentation_.transmit(aggregator_, datagram_, now, sink);
}

void Discovery::on_offer(const proto::OfferBody& offer, std::size_t length, Time now) {
  if (offer.instance.value() != config_.instance) return;
  if (!is_possible(offer, aggregator_.port)) {
    impossible_ = true;
    return;
  }
  if (segmentation_.on_answer(length)) return;
  const auto answered = std::find_if(
      candidates_.begin(), candidates_.end(),
      [length](std::uint16_t values) { return proto::datagram_size(values) == length; });
  if (answered == candidates_.end()) return;
  offer_ = offer;
  if (first_offer_ == kNever) first_offer_ = now;
  values_ = std::max(values_, std::min(*answered, offered_values()));
}

bool Discovery::settled(Time now) const {
  if (values_ == 0) return false;
  const bool best = values_ >= std::min(candidates_.front(), offered_values());
  return best || now - first_offer_ >= kPatience;
}

std::uint16_t Discovery::window() const {
  return offer_.max_window.value();
}

std::uint16_t Discovery::offered_values() const {
  const std::uint16_t most = offer_.max_values.value();
  return static_cast<std::uint16_t>(most - most % proto::kValuesMultiple);
}

std::string Discovery::describe() const {
  if (values_ == 0 && impossible_) {
    return "aggregator " + to_string(aggregator_) + " offers what no aggregator can have";
  }
  if (values_ == 0) {
    return "no answer from aggregator " + to_string(aggregator_) + " to " + std::to_string(asked_) +
           " HELLO packets, the shortest for " + std::to_string(candidates_.back()) +
           " values on a link of MTU " + std::to_string(config_.mtu);
  }
  return "aggregator " + to_string(aggregator_) + " answered";
}

}  // namespace natagg::worker
