// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/worker_host.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace natagg::simulation {
namespace {

// Values before and after every output that nobody may touch.
constexpr std::size_t kMargin = 16;
constexpr float kUntouched = -1234.5F;

// A stream that wants to run so often without time passing is spinning.
constexpr int kMaxTurnsAtOnce = 10'000;

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

}  // namespace

WorkerHost::WorkerHost(worker::StreamConfig config, const proto::Endpoint& self, Time start,
                       Invariants& invariants)
    : config_(std::move(config)), self_(self), start_(start), invariants_(&invariants) {}

void WorkerHost::add_job(Job job) {
  jobs_.push_back(std::move(job));
}

void WorkerHost::deliver(Packet packet, Time now) {
  if (!alive_ || !stream_) return;
  if (inbox_.empty()) inbox_since_ = now;
  inbox_.push_back(std::move(packet));
}

Time WorkerHost::paused_until(Time time) const {
  for (const Pause& pause : pauses_) {
    if (time >= pause.from && time < pause.to) return pause.to;
  }
  return time;
}

Time WorkerHost::next_submission() const {
  if (submitted_ == jobs_.size()) return kNever;
  const Job& job = jobs_[submitted_];
  if (job.after_previous && ended_ < submitted_) return kNever;
  return job.submit_at;
}

Time WorkerHost::next_event(Time now) const {
  if (!alive_) return kNever;
  if (!stream_) return std::max(start_, now);
  Time next = std::min(clock_.when(stream_->next_event(), now), next_submission());
  if (!inbox_.empty()) next = std::min(next, inbox_since_);
  next = std::min(next, close_at_);
  if (close_when_done_ && done()) next = now;
  return next == kNever ? kNever : paused_until(std::max(next, now));
}

void WorkerHost::run(Time now, Network& network) {
  if (!alive_ || paused_until(now) != now) return;
  turns_at_once_ = now == last_run_ ? turns_at_once_ + 1 : 0;
  last_run_ = now;
  if (turns_at_once_ > kMaxTurnsAtOnce) {
    violation("spins at " + std::to_string(now) + " ns");
    alive_ = false;
    return;
  }
  if (!stream_) stream_.emplace(config_, clock_.read(now));
  const bool for_time_alone = inbox_.empty() && next_submission() > now;
  receive(now);
  collect(now);
  submit_due(now);
  if (now >= close_at_ || (close_when_done_ && done())) {
    close_at_ = kNever;
    close_when_done_ = false;
    stream_->close(clock_.read(now));
  }
  transmit(now, network);
  collect(now);
  const std::span<const proto::Endpoint> groups = stream_->groups();
  for (; groups_ < groups.size(); ++groups_) network.subscribe(groups[groups_], self_);
  const bool due = stream_->next_event() <= clock_.read(now);
  if (due && due_ && for_time_alone) violation("has something due after a turn for it");
  due_ = due;
}

void WorkerHost::receive(Time now) {
  for (; !inbox_.empty(); inbox_.pop_front()) {
    const Packet& packet = inbox_.front();
    const std::uint64_t before = stream_->stats().result_packets;
    stream_->receive(packet.datagram, packet.from, clock_.read(now), packet.congested);
    if (stream_->stats().result_packets == before) continue;
    invariants_->answered(packet.from, self_, proto::read_header(packet.datagram));
  }
}

void WorkerHost::submit_due(Time now) {
  while (next_submission() <= now) {
    Job& job = jobs_[submitted_];
    const std::size_t length = job.input.size();
    std::vector<float>& buffer = buffers_.emplace_back(3 * kMargin + 2 * length, kUntouched);
    float* out = buffer.data() + kMargin;
    float* in = job.in_place ? out : out + length + kMargin;
    std::ranges::copy(job.input, in);
    const Time deadline = job.deadline == kNever ? kNever : clock_.read(now) + job.deadline;
    job.submitted = now;
    const std::uint64_t id =
        stream_->submit({.operation = job.operation, .in = in, .out = out, .deadline = deadline});
    if (id != submitted_) violation("submission got id " + std::to_string(id));
    ++submitted_;
    collect(now);
  }
}

void WorkerHost::transmit(Time now, Network& network) {
  std::array<worker::Outgoing, 32> batch;
  while (const std::size_t count = stream_->transmit(clock_.read(now), batch)) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = batch[i].datagram.size() + proto::kIpUdpBytes;
      if (bytes > config_.mtu) violation("sends " + std::to_string(bytes) + " bytes of IP");
      network.send(self_, batch[i].to, batch[i].datagram, now);
    }
  }
}

void WorkerHost::collect(Time now) {
  while (const std::optional<worker::Completion> completion = stream_->poll_completion()) {
    if (completion->id >= submitted_ || jobs_[completion->id].status) {
      violation("operation " + std::to_string(completion->id) + " completes without cause");
      continue;
    }
    Job& job = jobs_[completion->id];
    const std::span<const float> buffer = buffers_[completion->id];
    const std::size_t length = job.input.size();
    job.status = completion->status;
    job.partial = completion->partial;
    job.ended = now;
    job.output.assign(buffer.begin() + kMargin,
                      buffer.begin() + static_cast<std::ptrdiff_t>(kMargin + length));
    const auto untouched = [](float value) { return value == kUntouched; };
    if (!std::ranges::all_of(buffer.first(kMargin), untouched) ||
        !std::ranges::all_of(buffer.subspan(kMargin + length, kMargin), untouched)) {
      violation("operation " + std::to_string(completion->id) + " writes beside its output");
    }
    if (!job.in_place && !same_bits(buffer.subspan(2 * kMargin + length, length), job.input)) {
      violation("operation " + std::to_string(completion->id) + " changes its input");
    }
    ++ended_;
  }
}

void WorkerHost::violation(const std::string& text) {
  violations_.push_back("rank " + std::to_string(config_.rank) + ": " + text);
}

}  // namespace natagg::simulation
