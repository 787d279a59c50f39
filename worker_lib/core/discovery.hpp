// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Asks one aggregator which shards it has, with questions as long as the largest packets that the
// path might carry: the longest that is answered is what the path really carries, both ways.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "worker_lib/core/segmentation_probe.hpp"
#include "worker_lib/core/sink.hpp"

namespace natagg::worker {

class Discovery {
 public:
  /// `config` outlives this.
  Discovery(const StreamConfig& config, const proto::Endpoint& aggregator, Time now);

  void transmit(Time now, Sink& sink);
  [[nodiscard]] Time next_event() const;

  void on_offer(const proto::OfferBody& offer, std::size_t length, Time now);

  /// The aggregator has answered.
  [[nodiscard]] bool offered() const { return first_offer_ != kNever; }

  /// True when no better answer is worth waiting for.
  [[nodiscard]] bool settled(Time now) const;

  /// Once it is settled, asks whether the path carries segmented packets.
  void probe_segmentation(Time now, Sink& sink);
  [[nodiscard]] const SegmentationProbe& segmentation() const { return segmentation_; }

  [[nodiscard]] const proto::Endpoint& aggregator() const { return aggregator_; }
  [[nodiscard]] std::uint16_t shards() const { return offer_.shards.value(); }
  [[nodiscard]] std::uint16_t window() const;                     // slots a shard offers
  [[nodiscard]] std::uint16_t values() const { return values_; }  // that the path carries

  /// What is wrong, for a connect that runs out of time.
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] std::uint16_t offered_values() const;

  const StreamConfig& config_;
  proto::Endpoint aggregator_;
  std::vector<std::uint16_t> candidates_;  // values a packet to try, most first
  std::vector<std::byte> datagram_;        // of the largest; smaller ones are its prefixes
  std::size_t next_candidate_ = 0;
  proto::OfferBody offer_{};
  std::uint16_t values_ = 0;
  std::uint32_t asked_ = 0;
  bool impossible_ = false;  // an offer was
  Time next_round_;
  SegmentationProbe segmentation_;
  Time first_offer_ = kNever;
};

}  // namespace natagg::worker
