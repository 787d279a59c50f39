// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/stream.hpp"

#include <algorithm>
#include <deque>

#include "worker_lib/core/channel.hpp"
#include "worker_lib/core/connecting.hpp"
#include "worker_lib/core/failures.hpp"
#include "worker_lib/core/guard.hpp"
#include "worker_lib/core/joining.hpp"
#include "worker_lib/core/leaving.hpp"
#include "worker_lib/core/operation_queue.hpp"
#include "worker_lib/core/recovery.hpp"
#include "worker_lib/core/stream_config.hpp"

namespace natagg::worker {
namespace {

using proto::Endpoint;
using proto::Header;
using proto::Type;

bool names_rank(const Flight& flight) {
  return flight.missing_count != 0 || flight.held_back;
}

/// What waits to be told to the other lanes.
constexpr std::size_t kMaxForeignMoves = 16;

StreamConfig checked(StreamConfig config) {
  validate(config);
  return config;
}

}  // namespace

class Stream::Impl {
 public:
  Impl(StreamConfig config, Time now)
      : config_(checked(std::move(config))),
        kernels_(config_.kernels != nullptr ? *config_.kernels : default_kernels()),
        connecting_(config_, joinings_, channels_, recovery_, now),
        operations_(config_.first_operation),
        last_transmit_(now) {
    if (config_.key) guard_.emplace(config_);
  }

  std::uint64_t submit(const Submission& submission) {
    const std::uint64_t id = operations_.next_id();
    const bool ended = operations_.submit(submission);
    if (ended) complete_empty(id);
    if (state_ == State::kFailed) end_operations(failure_.status);
    if (state_ == State::kClosing || state_ == State::kClosed) end_operations(NATAGG_CLOSED);
    return id;
  }

  void receive(std::span<const std::byte> datagram, const Endpoint& source, Time now,
               bool congested) {
    congested_ = congested;
    stats_.bytes_received += datagram.size();
    const proto::Keys keys = guard_ ? proto::Keys::kSome : proto::Keys::kNone;
    if (proto::validate(datagram, keys) != proto::Reject::kNone) {
      ++stats_.rejected_packets;
      return;
    }
    const Header header = proto::read_header(datagram);
    if (header.job.value() != config_.job || (guard_ && !admitted(header, datagram, source, now)) ||
        !dispatch(header, datagram, source, now)) {
      ++stats_.rejected_packets;
    }
  }

  std::size_t transmit(Time now, std::span<Outgoing> out) {
    forgive_pause(now);
    Sink sink(out);
    if (state_ == State::kConnecting) connect(now, sink);
    if (state_ == State::kReady) {
      watch(now);
      connecting_.probe_segmentation(now, sink);
      for (Joining& joining : joinings_) joining.transmit(now, sink);
    }
    if (state_ == State::kConnecting || state_ == State::kReady) {
      transmit_channels(now, sink);
    } else {
      leaving_.transmit(now, sink);
      if (state_ == State::kClosing && leaving_.done()) state_ = State::kClosed;
    }
    if (!guard_) {
      stats_.bytes_sent += sink.bytes();
      return sink.size();
    }
    const std::size_t sealed = guard_->seal(out.first(sink.size()));
    for (const Outgoing& datagram : out.first(sealed))
      stats_.bytes_sent += datagram.datagram.size();
    return sealed;
  }

  [[nodiscard]] Time next_event() const {
    if (state_ != State::kConnecting && state_ != State::kReady) return leaving_.next_event();
    Time next = operations_.earliest_deadline();
    for (const auto& channel : channels_) {
      if (channel) next = std::min(next, channel->next_event());
    }
    if (state_ == State::kConnecting) return std::min(next, connecting_.next_event());
    for (const Joining& joining : joinings_) next = std::min(next, joining.next_event());
    next = std::min(next, connecting_.next_probe());
    return next;
  }

  std::optional<Completion> poll_completion() {
    if (completions_.empty()) return std::nullopt;
    const Completion completion = completions_.front();
    completions_.pop_front();
    return completion;
  }

  std::optional<ForeignMove> poll_foreign_move() {
    if (foreign_moves_.empty()) return std::nullopt;
    const ForeignMove move = foreign_moves_.front();
    foreign_moves_.pop_front();
    return move;
  }

  void receive(const ForeignMove& move, Time now) {
    const bool running = state_ == State::kConnecting || state_ == State::kReady;
    if (running) recovery_.on_move(move.body, move.source, now);
  }

  void give_up(const Failure& failure, Time now) {
    if (state_ == State::kConnecting || state_ == State::kReady) fail(failure, now);
  }

  void close(Time now) {
    if (state_ == State::kClosing || state_ == State::kClosed) return;
    end_operations(NATAGG_CLOSED);
    if (state_ != State::kFailed) say_farewell({NATAGG_CLOSED, -1, {}}, now);
    state_ = leaving_.done() ? State::kClosed : State::kClosing;
  }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] std::span<const Endpoint> groups() const { return groups_; }
  [[nodiscard]] const StreamStats& stats() const { return stats_; }

 private:
  // --- Receiving ---

  /// Whether the job's key vouches for the packet.
  bool admitted(const Header& header, std::span<const std::byte> datagram, const Endpoint& source,
                Time now) {
    switch (guard_->judge(header, datagram, source)) {
      case Guard::Verdict::kAdmitted: connecting_.drop_hint(source); return true;
      case Guard::Verdict::kHint:
        if (state_ == State::kConnecting) {
          connecting_.take_hint(proto::read_body<proto::RefuseBody>(datagram), source, now);
        }
        return false;
      case Guard::Verdict::kRejected: return false;
    }
    return false;
  }

  /// False when the packet has no place in the present state.
  bool dispatch(const Header& header, std::span<const std::byte> datagram, const Endpoint& source,
                Time now) {
    if (header.type == Type::kLeave) {
      leaving_.on_leave(source, header.epoch.value());
      return true;
    }
    if (state_ != State::kConnecting && state_ != State::kReady) return false;
    switch (header.type) {
      case Type::kOffer: return connecting_.on_offer(datagram, source, now);
      case Type::kRefuse: return on_refuse(datagram, source, now);
      case Type::kWelcome: return on_welcome(header, datagram, source, now);
      case Type::kProbe: return on_probe(header, source, now);
      case Type::kMove: return on_move(proto::read_body<proto::MoveBody>(datagram), source, now);
      case Type::kChallenge: return on_challenge(source, now);
      default: return on_session_packet(header, datagram, source, now);
    }
  }

  bool on_session_packet(const Header& header, std::span<const std::byte> datagram,
                         const Endpoint& source, Time now) {
    const auto place = find_place(source, header.epoch.value());
    if (!place) return false;
    Channel* channel = channels_[*place].get();
    if (channel == nullptr) return false;
    if (channel->suspended()) {
      if (header.type != Type::kAbort) return false;
      fail(aborted(source, proto::read_body<proto::AbortBody>(datagram)), now);
      return true;
    }
    channel->heard(now);
    if (congested_) channel->on_mark(now);
    switch (header.type) {
      case Type::kResult: on_result(*channel, header, datagram, {}, now); return true;
      case Type::kPartial:
        on_result(*channel, header, datagram, proto::rank_set(datagram), now);
        return true;
      case Type::kPending:
        channel->on_pending(header, proto::read_body<proto::PendingBody>(datagram), now);
        return true;
      case Type::kNack:
        channel->on_nack(header, proto::read_body<proto::NackBody>(datagram), now);
        return true;
      case Type::kAbort:
        on_abort(*place, source, proto::read_body<proto::AbortBody>(datagram), now);
        return true;
      case Type::kHeartbeat: return true;
      default: return false;
    }
  }

  void on_result(Channel& channel, const Header& header, std::span<const std::byte> datagram,
                 std::span<const std::uint8_t> ranks, Time now) {
    auto completion = channel.on_result(header, proto::payload(datagram), ranks, now);
    if (channel.contradicted()) {
      return fail(contradicted(channel.session().endpoint, header), now);
    }
    if (!completion) return;
    PartialReport& partial = completion->partial;
    if (partial.partial_chunks == 0) partial.least_ranks = config_.world;
    completions_.push_back(*completion);
  }

  void on_abort(std::size_t place, const Endpoint& source, const proto::AbortBody& body, Time now) {
    // Either may be said by a shard that restarted; if the job has formed anew, JOIN finds out.
    if (body.reason == proto::AbortReason::kUnknownSession ||
        body.reason == proto::AbortReason::kSuperseded) {
      return recovery_.restart(place, now);
    }
    fail(aborted(source, body), now);
  }

  bool on_welcome(const Header& header, std::span<const std::byte> datagram, const Endpoint& source,
                  Time now) {
    const auto body = proto::read_body<proto::WelcomeBody>(datagram);
    Joining* joining = find_joining(source, body.shard.value());
    if (joining == nullptr) return false;
    const bool was_ready = joining->ready();
    if (auto conflict = joining->on_welcome(header, body, now)) {
      fail({NATAGG_REFUSED, -1, *conflict}, now);
      return true;
    }
    // One group a shard at most, however often it names another.
    if (const auto group = joining->group();
        group && groups_.size() < joinings_.size() &&
        std::find(groups_.begin(), groups_.end(), *group) == groups_.end()) {
      groups_.push_back(*group);
    }
    if (joining->ready() && !was_ready) {
      open_channel(channels_[static_cast<std::size_t>(joining - joinings_.data())],
                   joining->session(), now);
      if (state_ != State::kConnecting) return true;
      if (std::all_of(joinings_.begin(), joinings_.end(),
                      [](const Joining& j) { return j.ready(); })) {
        become_ready(now);
      }
    }
    return true;
  }

  bool on_move(const proto::MoveBody& body, const Endpoint& source, Time now) {
    if (config_.lane.count == 1 || recovery_.serves(body.shard.value())) {
      return recovery_.on_move(body, source, now);
    }
    // It is sent again while it matters.
    if (foreign_moves_.size() == kMaxForeignMoves) return false;
    foreign_moves_.push_back({body, source});
    return true;
  }

  bool on_probe(const Header& header, const Endpoint& source, Time now) {
    const auto place = find_place(source, header.epoch.value());
    if (!place) return false;
    joinings_[*place].on_probe(header, now);
    return true;
  }

  bool on_challenge(const Endpoint& source, Time now) {
    for (Joining& joining : joinings_) {
      if (joining.shard() == source) joining.on_challenge(now);
    }
    return true;
  }

  void open_channel(std::unique_ptr<Channel>& channel, const ShardSession& session, Time now) {
    if (!channel) {
      channel = std::make_unique<Channel>(config_, kernels_, session, operations_, stats_, now);
      return;
    }
    if (session.epoch != channel->session().epoch) ++stats_.resumed_sessions;
    if (!channel->resume(session, now)) {
      fail({NATAGG_AGGREGATOR_LOST, -1,
            "aggregator " + to_string(session.endpoint) + " resumes the job at chunk sequence " +
                std::to_string(session.first_sequence) + ", long before this rank's " +
                std::to_string(channel->resume_point())},
           now);
    }
  }

  bool on_refuse(std::span<const std::byte> datagram, const Endpoint& source, Time now) {
    const auto body = proto::read_body<proto::RefuseBody>(datagram);
    if (Joining* joining = find_joining(source, body.shard.value())) {
      if (const auto reason = joining->on_refuse(body)) fail({NATAGG_REFUSED, -1, *reason}, now);
      return true;
    }
    if (!connecting_.concerns(body, source)) return false;
    fail(connecting_.refused(body, source), now);
    return true;
  }

  // --- Connecting ---

  void connect(Time now, Sink& sink) {
    if (operations_.overdue(now) != nullptr) return fail(connecting_.timed_out(now), now);
    if (auto failure = connecting_.transmit(now, sink)) fail(std::move(*failure), now);
  }

  void become_ready(Time now) {
    if (auto failure = connecting_.agree(stats_)) return fail(std::move(*failure), now);
    Layout layout{.values = stats_.values, .shards = stats_.shards, .places = {}};
    for (const Joining& joining : joinings_) layout.places.push_back(joining.session().index);
    for (const std::uint64_t id : operations_.set_layout(std::move(layout))) complete_empty(id);
    state_ = State::kReady;
  }

  // --- Running ---

  /// Each shard has its own share of what may be under way. Were it first come, first served, two
  /// ranks could fill it with chunks of different shards and wait for each other for ever.
  void transmit_channels(Time now, Sink& sink) {
    if (channels_.empty()) return;
    const std::size_t share = std::max<std::size_t>(1, config_.in_flight / channels_.size());
    // Each call starts at another shard, so that none starves when the sink is short.
    stats_.smoothed_rtt = 0;
    stats_.segmentation = Segmentation::kOff;
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      Channel* channel = channels_[(first_channel_ + i) % channels_.size()].get();
      if (channel == nullptr) continue;
      const Segmentation segmentation =
          channel->segmentation(connecting_.segmentation(channel->session().endpoint));
      stats_.segmentation = std::max(stats_.segmentation, segmentation);
      channel->transmit(now, share - std::min(share, channel->in_flight()), sink);
      stats_.smoothed_rtt = std::max(stats_.smoothed_rtt, channel->smoothed_rtt());
    }
    ++first_channel_;
  }

  /// Fails the stream when a deadline has passed; looks for another aggregator, or fails the
  /// stream, when one is silent.
  void watch(Time now) {
    if (const PendingOperation* operation = operations_.overdue(now)) {
      return fail(explain_overdue(*operation, now), now);
    }
    if (auto failure = recovery_.watch(now)) fail(std::move(*failure), now);
  }

  [[nodiscard]] Failure explain_overdue(const PendingOperation& operation, Time now) const {
    for (std::size_t place = 0; place < channels_.size(); ++place) {
      if (joinings_[place].ready()) continue;
      Failure failure = overdue(operation, nullptr, nullptr, now);
      failure.rank = joinings_[place].missing_rank();
      failure.message += ": " + joinings_[place].describe();
      return failure;
    }
    // Best of a shard that has said whom it waits for.
    const Channel* at = nullptr;
    const Flight* oldest = nullptr;
    for (const auto& channel : channels_) {
      const Flight* flight = channel->oldest_of(operation.id);
      if (flight == nullptr || (oldest != nullptr && !names_rank(*flight))) continue;
      at = channel.get();
      oldest = flight;
      if (names_rank(*flight)) break;
    }
    return overdue(operation, at, oldest, now);
  }

  /// A process that was stopped for a while has heard nobody in that time, which says nothing
  /// about them.
  void forgive_pause(Time now) {
    const Time gap = now - last_transmit_;
    last_transmit_ = now;
    if (gap < 2 * config_.heartbeat_interval) return;
    for (const auto& channel : channels_) {
      if (channel) channel->forgive(std::min(gap, now - channel->silent_since()));
    }
    for (Joining& joining : joinings_) {
      joining.forgive(std::min(gap, now - joining.silent_since()));
    }
  }

  // --- Ending ---

  void fail(Failure failure, Time now) {
    failure_ = std::move(failure);
    state_ = State::kFailed;
    say_farewell(failure_, now);
    end_operations(failure_.status);
  }

  void say_farewell(const Failure& why, Time now) {
    leaving_.begin(why, now);
    for (const Joining& joining : joinings_) {
      const ShardSession& session = joining.session();
      if (session.epoch != 0) {
        leaving_.add(session.endpoint, config_.job, session.epoch, config_.rank);
      }
    }
  }

  void end_operations(natagg_status status) {
    operations_.end_all(
        [&](std::uint64_t id) { completions_.push_back({.id = id, .status = status}); });
  }

  /// An operation of which this stream has no chunk.
  void complete_empty(std::uint64_t id) {
    completions_.push_back({.id = id, .partial = {.least_ranks = config_.world}});
  }

  /// Which of the joinings and channels has that session. One shard may have several places'.
  [[nodiscard]] std::optional<std::size_t> find_place(const Endpoint& shard,
                                                      std::uint32_t epoch) const {
    for (std::size_t place = 0; place < joinings_.size(); ++place) {
      const ShardSession& session = joinings_[place].session();
      if (session.epoch == epoch && session.endpoint == shard) return place;
    }
    return std::nullopt;
  }

  Joining* find_joining(const Endpoint& shard, std::uint16_t index) {
    const auto found = std::ranges::find_if(
        joinings_, [&](const Joining& joining) { return joining.is(shard, index); });
    return found == joinings_.end() ? nullptr : &*found;
  }

  StreamConfig config_;
  const Kernels& kernels_;
  std::optional<Guard> guard_;  // where the job has a key
  bool congested_ = false;      // the packet that is being received
  State state_ = State::kConnecting;
  std::vector<Joining> joinings_;  // one a shard, by addresses; empty until discovered
  std::vector<std::unique_ptr<Channel>> channels_;  // one a shard, null until it is ready
  Recovery recovery_{config_, guard_, joinings_, channels_};
  Connecting connecting_;
  OperationQueue operations_;
  std::deque<Completion> completions_;
  std::deque<ForeignMove> foreign_moves_;
  std::vector<Endpoint> groups_;
  Leaving leaving_;
  Failure failure_;
  StreamStats stats_;
  std::size_t first_channel_ = 0;
  Time last_transmit_;
};

Stream::Stream(StreamConfig config, Time now)
    : impl_(std::make_unique<Impl>(std::move(config), now)) {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

Stream::State Stream::state() const {
  return impl_->state();
}
const Failure& Stream::failure() const {
  return impl_->failure();
}
std::uint64_t Stream::submit(const Submission& submission) {
  return impl_->submit(submission);
}
void Stream::receive(std::span<const std::byte> datagram, const Endpoint& source, Time now,
                     bool congested) {
  impl_->receive(datagram, source, now, congested);
}
std::size_t Stream::transmit(Time now, std::span<Outgoing> out) {
  return impl_->transmit(now, out);
}
Time Stream::next_event() const {
  return impl_->next_event();
}
std::optional<Completion> Stream::poll_completion() {
  return impl_->poll_completion();
}
std::span<const Endpoint> Stream::groups() const {
  return impl_->groups();
}
std::optional<ForeignMove> Stream::poll_foreign_move() {
  return impl_->poll_foreign_move();
}
void Stream::receive(const ForeignMove& move, Time now) {
  impl_->receive(move, now);
}
void Stream::fail(const Failure& failure, Time now) {
  impl_->give_up(failure, now);
}
void Stream::close(Time now) {
  impl_->close(now);
}
const StreamStats& Stream::stats() const {
  return impl_->stats();
}

}  // namespace natagg::worker
