// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "simulation/worker_host.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "worker_lib/core/segment_run.hpp"

namespace natagg::simulation {
namespace {

// Values before and after every output that nobody may touch.
constexpr std::size_t kMargin = 16;
constexpr float kUntouched = -1234.5F;

// A stream that wants to run so often without time passing is spinning.
constexpr int kMaxTurnsAtOnce = 10'000;

using State = worker::Stream::State;

bool is_ready(const worker::Stream& stream) {
  return stream.state() == State::kReady;
}

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

std::vector<proto::Endpoint> WorkerHost::endpoints() const {
  std::vector<proto::Endpoint> all;
  for (std::uint16_t lane = 0; lane < config_.lane.count; ++lane) {
    all.push_back({self_.address, static_cast<std::uint16_t>(self_.port + lane * kLanePorts)});
  }
  return all;
}

bool WorkerHost::owns(const proto::Endpoint& endpoint) const {
  const int distance = endpoint.port - self_.port;
  return endpoint.address == self_.address && distance >= 0 && distance % kLanePorts == 0 &&
         distance / kLanePorts < config_.lane.count;
}

bool WorkerHost::ready() const {
  return started() && !lacks_lanes() && std::ranges::all_of(lanes_, is_ready, &Lane::stream);
}

bool WorkerHost::ready(const proto::Endpoint& lane) const {
  return std::ranges::any_of(lanes_, [&](const Lane& candidate) {
    return candidate.self == lane && is_ready(candidate.stream);
  });
}

bool WorkerHost::closed() const {
  return started() && std::ranges::all_of(lanes_, [](const Lane& lane) {
           return lane.stream.state() == State::kClosed;
         });
}

std::uint64_t WorkerHost::count(std::uint64_t worker::StreamStats::*counter) const {
  std::uint64_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.stream.stats().*counter;
  return sum;
}

/// More lanes are to start: each does when the one before is ready.
bool WorkerHost::lacks_lanes() const {
  if (closing_ || lanes_.size() == config_.lane.count) return false;
  if (lanes_.empty()) return true;
  const worker::Stream& first = lanes_.front().stream;
  if (first.state() == State::kConnecting) return true;
  const bool failed = std::ranges::any_of(
      lanes_, [](const Lane& lane) { return lane.stream.state() == State::kFailed; });
  return !failed && lanes_.size() < first.stats().shards;
}

void WorkerHost::start_lanes(Time now) {
  while (lacks_lanes() && (lanes_.empty() || is_ready(lanes_.back().stream))) {
    const std::size_t index = lanes_.size();
    worker::StreamConfig config = config_;
    config.lane.index = static_cast<std::uint16_t>(index);
    config.entropy[0] = static_cast<std::uint8_t>(config.entropy[0] + index);
    if (index > 0) {
      config.values = lanes_.front().stream.stats().values;
      config.lane.members = lanes_.front().stream.stats().members;
    }
    lanes_.push_back({endpoints()[index], worker::Stream(std::move(config), clock_.read(now))});
  }
}

/// What one lane has learned and others need.
void WorkerHost::tell_other_lanes(Time now) {
  if (lanes_.size() < 2) return;
  const Time time = clock_.read(now);
  for (Lane& lane : lanes_) {
    while (const auto move = lane.stream.poll_foreign_move()) {
      for (Lane& other : lanes_) {
        if (&other != &lane) other.stream.receive(*move, time);
      }
    }
    if (lane.stream.state() != State::kFailed) continue;
    const worker::Failure failure = lane.stream.failure();
    for (Lane& other : lanes_) other.stream.fail(failure, time);
  }
}

void WorkerHost::deliver(Packet packet, Time now) {
  if (!alive_ || !started()) return;
  if (inbox_.empty()) inbox_since_ = now;
  inbox_.push_back(std::move(packet));
}

Time WorkerHost::paused_until(Time time) const {
  for (const Pause& pause : pauses_) {
    if (time >= pause.from && time < pause.to) return pause.to;
  }
  return time;
}

/// A lone stream takes jobs while it connects; lanes get them when all of them are ready, or no
/// more will be.
bool WorkerHost::takes_jobs() const {
  if (config_.lane.count == 1) return true;
  return !lacks_lanes() && std::ranges::none_of(lanes_, [](const Lane& lane) {
    return lane.stream.state() == State::kConnecting;
  });
}

Time WorkerHost::next_submission() const {
  if (submitted_ == jobs_.size() || !takes_jobs()) return kNever;
  const Job& job = jobs_[submitted_];
  if (job.after_previous && ended_ < submitted_) return kNever;
  return job.submit_at;
}

Time WorkerHost::stream_event() const {
  Time next = kNever;
  for (const Lane& lane : lanes_) next = std::min(next, lane.stream.next_event());
  return next;
}

Time WorkerHost::next_event(Time now) const {
  if (!alive_) return kNever;
  if (!started()) return std::max(start_, now);
  Time next = std::min(clock_.when(stream_event(), now), next_submission());
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
  const bool for_time_alone = inbox_.empty() && next_submission() > now;
  start_lanes(now);
  receive(now);
  start_lanes(now);
  collect(now);
  submit_due(now);
  if (now >= close_at_ || (close_when_done_ && done())) {
    close_at_ = kNever;
    close_when_done_ = false;
    closing_ = true;
    for (Lane& lane : lanes_) lane.stream.close(clock_.read(now));
  }
  transmit(now, network);
  tell_other_lanes(now);
  collect(now);
  for (Lane& lane : lanes_) {
    const std::span<const proto::Endpoint> groups = lane.stream.groups();
    for (; lane.groups < groups.size(); ++lane.groups) {
      network.subscribe(groups[lane.groups], lane.self);
    }
  }
  const bool due = stream_event() <= clock_.read(now);
  if (due && due_ && for_time_alone) violation("has something due after a turn for it");
  due_ = due;
}

void WorkerHost::receive(Time now) {
  for (; !inbox_.empty(); inbox_.pop_front()) {
    const Packet& packet = inbox_.front();
    const auto lane = std::ranges::find(lanes_, packet.to, &Lane::self);
    if (lane == lanes_.end()) continue;
    const std::uint64_t before = lane->stream.stats().result_packets;
    lane->stream.receive(packet.datagram, packet.from, clock_.read(now), packet.congested);
    if (lane->stream.stats().result_packets == before) continue;
    invariants_->answered(packet.from, lane->self, proto::read_header(packet.datagram));
  }
  tell_other_lanes(now);
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
    for (Lane& lane : lanes_) {
      const std::uint64_t id = lane.stream.submit(
          {.operation = job.operation, .in = in, .out = out, .deadline = deadline});
      if (id != submitted_) violation("submission got id " + std::to_string(id));
    }
    ++submitted_;
    collect(now);
  }
}

void WorkerHost::transmit(Time now, Network& network) {
  std::array<worker::Outgoing, 32> batch;
  for (Lane& lane : lanes_) {
    while (const std::size_t count = lane.stream.transmit(clock_.read(now), batch)) {
      std::span<const worker::Outgoing> rest = std::span(batch).first(count);
      while (!rest.empty()) {
        const std::size_t run = config_.segmentation ? worker::segment_run(rest) : 1;
        send(lane.self, rest.first(run), now, network);
        rest = rest.subspan(run);
      }
    }
  }
}

/// What leaves as one packet.
void WorkerHost::send(const proto::Endpoint& from, std::span<const worker::Outgoing> datagrams,
                      Time now, Network& network) {
  const bool arrives = datagrams.size() == 1 || network.cuts_up(self_.address);
  for (const worker::Outgoing& outgoing : datagrams) {
    const std::size_t bytes = outgoing.datagram.size() + proto::kIpUdpBytes;
    if (bytes > config_.mtu) violation("sends " + std::to_string(bytes) + " bytes of IP");
    if (!config_.segmentation && outgoing.segmentable) violation("segments, and must not");
    if (arrives) network.send(from, outgoing.to, outgoing.datagram, now);
  }
}

/// An operation has ended when it has in every lane.
void WorkerHost::collect(Time now) {
  for (Lane& lane : lanes_) {
    while (const auto completion = lane.stream.poll_completion()) note_end(*completion);
  }
  if (lacks_lanes()) return;
  for (std::size_t i = 0; i < submitted_; ++i) {
    if (!jobs_[i].status && jobs_[i].lanes_ended == lanes_.size()) end_job(i, now);
  }
}

void WorkerHost::note_end(const worker::Completion& completion) {
  if (completion.id >= submitted_ || jobs_[completion.id].lanes_ended == lanes_.size()) {
    return violation("operation " + std::to_string(completion.id) + " completes without cause");
  }
  Job& job = jobs_[completion.id];
  ++job.lanes_ended;
  if (job.first_failure == NATAGG_OK) job.first_failure = completion.status;
  worker::PartialReport& sum = job.partial;
  const worker::PartialReport& part = completion.partial;
  if (sum.chunks == 0) {
    sum = part;
    return;
  }
  if (part.chunks == 0) return;
  sum.least_ranks = std::min(sum.least_ranks, part.least_ranks);
  sum.chunks += part.chunks;
  sum.partial_chunks += part.partial_chunks;
  sum.variance_inflation += part.variance_inflation - 1;
  for (std::size_t i = 0; i < sum.missing.size(); ++i) sum.missing[i] |= part.missing[i];
}

void WorkerHost::end_job(std::size_t number, Time now) {
  Job& job = jobs_[number];
  const std::span<const float> buffer = buffers_[number];
  const std::size_t length = job.input.size();
  const std::string name = "operation " + std::to_string(number);
  job.status = job.first_failure;
  job.ended = now;
  job.output.assign(buffer.begin() + kMargin,
                    buffer.begin() + static_cast<std::ptrdiff_t>(kMargin + length));
  const auto untouched = [](float value) { return value == kUntouched; };
  if (!std::ranges::all_of(buffer.first(kMargin), untouched) ||
      !std::ranges::all_of(buffer.subspan(kMargin + length, kMargin), untouched)) {
    violation(name + " writes beside its output");
  }
  if (!job.in_place && !same_bits(buffer.subspan(2 * kMargin + length, length), job.input)) {
    violation(name + " changes its input");
  }
  ++ended_;
}

void WorkerHost::violation(const std::string& text) {
  violations_.push_back("rank " + std::to_string(config_.rank) + ": " + text);
}

}  // namespace natagg::simulation
