// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "stream_witness.hpp"

#include <algorithm>
#include <array>

#include "input.hpp"

namespace natagg::fuzz {

using proto::Header;
using proto::Type;
using worker::Stream;
using worker::Time;

namespace {

constexpr float kGuard = -7777.0F;
constexpr std::size_t kGuards = 8;
constexpr std::size_t kRemembered = 16;

/// More than a stream of the fuzzer's pools has to say at one time.
constexpr std::size_t kMostAtATime = 4096;

/// More events than the longest deadline holds time-outs of all chunks.
constexpr int kMostEvents = 200'000;

}  // namespace

StreamWitness::StreamWitness(const worker::StreamConfig& config, Time start)
    : config_(config), stream_(config, start), now_(start), memory_(16'384) {
  if (config_.key) shards_.emplace(config_.job, config_.rank);
}

void StreamWitness::receive(std::span<const std::byte> datagram, const proto::Endpoint& source) {
  const worker::StreamStats before = stream_.stats();
  const Stream::State state = stream_.state();
  stream_.receive(memory_.hold(datagram), source, now_);
  const worker::StreamStats& after = stream_.stats();
  require(after.bytes_received == before.bytes_received + datagram.size(), "bytes are counted");
  const std::uint64_t outcomes = after.rejected_packets - before.rejected_packets +
                                 after.result_packets - before.result_packets +
                                 after.duplicate_results - before.duplicate_results;
  require(outcomes <= 1, "a datagram is counted once");
  const bool taken = after.rejected_packets == before.rejected_packets;
  if (shards_) check_key(datagram, source, taken);
  require(taken || !shards_ || stream_.state() == state, "what is rejected changes nothing");
  require(stream_.groups().size() <= 2 * proto::kMaxShards, "groups are bounded");
  collect();
}

void StreamWitness::check_key(std::span<const std::byte> datagram, const proto::Endpoint& source,
                              bool taken) {
  if (!taken) return;
  Sealed* sealed = shards_->find(datagram);
  require(sealed != nullptr, "only what a shard has sealed is taken");
  require(sealed->by == source, "what a shard has sealed is taken from it alone");
  const Header header = proto::read_header(datagram);
  // That a shard does not know the session is as true the second time.
  require(!sealed->taken || proto::aborts_unknown(header, datagram), "nothing is taken twice");
  sealed->taken = true;
}

void StreamWitness::submit(std::size_t length, Time timeout) {
  auto operation = std::make_unique<Operation>();
  operation->length = length;
  operation->values.assign(length + kGuards, 1.0F);
  std::fill_n(operation->values.begin() + static_cast<std::ptrdiff_t>(length), kGuards, kGuard);
  const bool partial = config_.straggler_deadline != 0 && length % 2 == 0;
  const auto reduction = partial ? proto::Reduction::kPartialSum : proto::Reduction::kSum;
  const std::uint64_t id = stream_.submit({.operation = {.length = length, .reduction = reduction},
                                           .in = operation->values.data(),
                                           .out = operation->values.data(),
                                           .deadline = now_ + timeout});
  require(id == operations_.size(), "ids count up from 0");
  operations_.push_back(std::move(operation));
  collect();
}

void StreamWitness::transmit() {
  std::array<worker::Outgoing, 8> burst;
  std::size_t sent = 0;
  while (const std::size_t n = stream_.transmit(now_, burst)) {
    for (std::size_t i = 0; i < n; ++i) look_at(burst[i]);
    sent += n;
    require(sent <= kMostAtATime, "a stream comes to an end of sending");
  }
  collect();
  require(stream_.next_event() > now_, "the next event is later than now");
}

void StreamWitness::look_at(const worker::Outgoing& outgoing) {
  const proto::Keys keys = shards_ ? proto::Keys::kSome : proto::Keys::kNone;
  require(proto::validate(outgoing.datagram, keys) == proto::Reject::kNone,
          "what is sent is well formed");
  if (shards_) shards_->hear(outgoing.datagram, outgoing.to);
  const bool to_pool =
      std::any_of(config_.aggregators.begin(), config_.aggregators.end(),
                  [&](const auto& known) { return known.address == outgoing.to.address; });
  require(to_pool, "what is sent is for an aggregator");
  const Header header = proto::read_header(outgoing.datagram);
  switch (header.type) {
    case Type::kData:
    case Type::kPartial:
      sent_.push_back({outgoing.to, header});
      if (sent_.size() > kRemembered) sent_.pop_front();
      return;
    case Type::kHello:
    case Type::kJoin:
    case Type::kLeave:
    case Type::kHeartbeat: return;
    default: require(false, "a worker does not send what aggregators send");
  }
}

void StreamWitness::collect() {
  while (const auto completion = stream_.poll_completion()) {
    require(completion->id < operations_.size(), "only what was submitted completes");
    Operation& operation = *operations_[completion->id];
    require(!operation.completed, "an operation completes once");
    operation.completed = true;
    const auto guards = operation.values.begin() + static_cast<std::ptrdiff_t>(operation.length);
    require(std::all_of(guards, operation.values.end(), [](float v) { return v == kGuard; }),
            "no value is written behind an operation");
    const bool ended =
        stream_.state() != Stream::State::kConnecting && stream_.state() != Stream::State::kReady;
    require(completion->status == NATAGG_OK || ended, "only a stream's end fails an operation");
  }
  if (stream_.state() != Stream::State::kFailed) return;
  require(stream_.failure().status != NATAGG_OK && !stream_.failure().message.empty(),
          "a failure has a status and a reason");
}

void StreamWitness::pass(Time time) {
  now_ += time;
  transmit();
}

void StreamWitness::pass_to_next_event() {
  transmit();
  if (stream_.next_event() != worker::kNever) now_ = stream_.next_event();
  transmit();
}

void StreamWitness::close() {
  stream_.close(now_);
  collect();
}

void StreamWitness::expect_end() {
  transmit();
  if (stream_.state() == Stream::State::kReady && operations_.empty()) close();
  for (int events = 0; stream_.next_event() != worker::kNever; ++events) {
    require(events < kMostEvents, "a stream that nobody answers comes to an end");
    pass_to_next_event();
  }
  require(stream_.state() == Stream::State::kClosed || stream_.state() == Stream::State::kFailed,
          "a stream that nobody answers has ended");
  for (const auto& operation : operations_) {
    require(operation->completed, "every operation completes");
  }
}

const SentData* StreamWitness::sent_data(std::size_t which) const {
  return sent_.empty() ? nullptr : &sent_[sent_.size() - 1 - which % sent_.size()];
}

std::size_t StreamWitness::values_asked() const {
  return config_.values != 0 ? config_.values : proto::values_for_mtu(config_.mtu);
}

}  // namespace natagg::fuzz
