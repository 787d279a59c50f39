// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/segmentation_probe.hpp"

namespace natagg::worker {
namespace {

constexpr Time kRound = 50'000'000;

/// One round may be lost like any packet.
constexpr int kRounds = 3;

}  // namespace

void SegmentationProbe::transmit(const proto::Endpoint& to, std::span<const std::byte> question,
                                 Time now, Sink& sink) {
  if (state_ != Segmentation::kProbing || now < next_round_) return;
  if (rounds_ == kRounds) {
    state_ = Segmentation::kNotCarried;
    return;
  }
  if (sink.room() < lengths_.size() && sink.size() != 0) return;  // they must stay together
  for (const std::size_t length : lengths_) {
    if (!sink.full()) sink.add(to, question.first(length), true);
  }
  ++rounds_;
  next_round_ = now + kRound;
}

bool SegmentationProbe::on_answer(std::size_t length) {
  if (state_ == Segmentation::kOff) return false;
  bool ours = false;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    if (length != lengths_[i]) continue;
    answered_[i] = ours = true;
  }
  if (answered_[0] && answered_[1]) state_ = Segmentation::kCarried;
  return ours;
}

}  // namespace natagg::worker
