// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/channel.hpp"

#include <algorithm>
#include <cstring>

#include "proto/serial.hpp"
#include "worker_lib/core/conversion.hpp"

namespace natagg::worker {
namespace {

using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Header;

/// Chunks that were held back and are tried again for each that is answered: enough to have all of
/// them soon, and few enough not to repeat many in vain.
constexpr std::size_t kAtOnce = 4;

/// By how much the chunks that seem to be lost must outnumber those that arrived, for this to be
/// the fault of leaving in one packet with others: a full queue loses fewer than it lets through,
/// and of what is merely late the shard says that it has it.
constexpr std::uint32_t kMostLostSegmented = 32;

/// In so many round trips a chunk of any rank's that was lost once is sent again and summed up.
constexpr Time kRepairRoundTrips = 2;

RttEstimator make_estimator(const StreamConfig& config) {
  if (config.straggler_deadline == 0) return {config.min_rto, config.max_rto};
  const Time longest = std::min(config.max_rto, Time{proto::kLateTimeout_ns});
  return {config.min_rto, std::max(config.min_rto, longest)};
}

std::size_t rank_set_bytes(const StreamConfig& config) {
  return config.straggler_deadline == 0 ? 0 : proto::rank_set_bytes(config.world);
}

}  // namespace

Channel::Channel(const StreamConfig& config, const Kernels& kernels, const ShardSession& session,
                 OperationQueue& operations, StreamStats& stats, Time now)
    : config_(config),
      kernels_(kernels),
      session_(session),
      operations_(operations),
      stats_(stats),
      rtt_(make_estimator(config)),
      window_(session.window, proto::datagram_size(session.values)),
      ring_(session.window),
      history_(session.window, session.values, rank_set_bytes(config)),
      heartbeat_(proto::make_header(proto::Type::kHeartbeat)),
      origin_(session.first_sequence) {
  heartbeat_.job = Be32{config.job};
  heartbeat_.rank = Be16{config.rank};
  start(now);
}

void Channel::start(Time now) {
  heartbeat_.epoch = Be32{session_.epoch};
  last_progress_ = last_timeout_ = last_sent_ = last_heartbeat_ = last_heard_ = now;
}

bool Channel::resume(const ShardSession& session, Time now) {
  suspended_ = false;
  if (session.epoch == session_.epoch && session.endpoint == session_.endpoint) {
    heard(now);  // the shard had the session all the time
    return true;
  }
  // Where no rank has a result, the first sequence may be any.
  const std::int64_t back =
      untouched_ ? static_cast<std::int64_t>(lacking_)
                 : proto::serial_distance(session.first_sequence, sequence_of(lacking_));
  if (back < 0 || static_cast<std::uint64_t>(back) > lacking_) return false;
  const std::uint64_t base = lacking_ - static_cast<std::uint64_t>(back);
  if (encoded_ - base > history_.depth()) return false;
  session_ = session;
  origin_ = session.first_sequence - static_cast<std::uint32_t>(base);
  oldest_ = next_ = base;
  in_flight_ = 0;
  ask_at_ = kNever;
  std::fill(ring_.begin(), ring_.end(), Flight{});
  sent_list_ = confirmed_list_ = lost_list_ = FlightList();
  lost_segmented_ = 0;
  rtt_ = make_estimator(config_);
  window_ = CongestionWindow(session.window, proto::datagram_size(session.values));
  start(now);
  return true;
}

Segmentation Channel::segmentation(Segmentation of_path) {
  const bool lost = lost_segmented_ >= kMostLostSegmented;
  const bool carried = of_path == Segmentation::kCarried;
  segmentable_ = carried && !lost;
  return carried && lost ? Segmentation::kNotCarried : of_path;
}

/// The first copy seems to be lost.
void Channel::doubt_segments(const Flight& flight) {
  if (flight.segmentable && flight.repeats == 0) ++lost_segmented_;
}

/// The first copy has arrived.
void Channel::trust_segments(const Flight& flight) {
  if (flight.segmentable && lost_segmented_ > 0) --lost_segmented_;
}

void Channel::transmit(Time now, std::size_t room, Sink& sink) {
  if (suspended_) return;
  time_out(now);
  while (!lost_list_.empty() && !sink.full()) send_again(lost_list_.head(), now, sink);
  while (room > 0 && !sink.full() && next_ - oldest_ < session_.window &&
         in_flight_ < window_.size()) {
    if (next_ == encoded_) {
      const auto range = operations_.chunk(next_ * session_.shards + session_.index, hint_);
      if (!range) break;
      encode_next(*range);
    }
    send_next(now, sink);
    --room;
  }
  if (now - last_heartbeat_ >= config_.heartbeat_interval && !sink.full()) {
    send_heartbeat(now, sink);
  }
}

Time Channel::next_event() const {
  if (suspended_) return kNever;
  if (!lost_list_.empty()) return 0;
  return std::min({timeout(), ask_at_, last_heartbeat_ + config_.heartbeat_interval});
}

/// When the oldest unanswered chunk times out.
Time Channel::timeout() const {
  Time oldest = kNever;
  if (!sent_list_.empty()) oldest = ring_[sent_list_.head()].sent;
  if (!confirmed_list_.empty()) oldest = std::min(oldest, ring_[confirmed_list_.head()].sent);
  if (oldest == kNever) return kNever;
  // Also counted from the last time-out, else those sent together would time out together.
  return std::max({oldest, last_progress_, last_timeout_}) + rtt_.rto();
}

/// Sends the first chunks again that were held back, and the next of them later.
void Channel::ask_for_held(std::size_t most, Time now) {
  ask_at_ = kNever;
  for (std::uint64_t number = oldest_; number < next_; ++number) {
    Flight& flight = ring_[ring_index(number)];
    if (flight.state != Flight::State::kSent || !flight.held_back) continue;
    if (most == 0) {
      ask_at_ = now + config_.min_rto;
      return;
    }
    --most;
    flight.held_back = false;
    move(ring_index(number), Flight::State::kLost);
  }
}

void Channel::time_out(Time now) {
  if (now >= ask_at_) ask_for_held(1, now);
  if (now < timeout()) return;
  const bool confirmed =
      sent_list_.empty() || (!confirmed_list_.empty() &&
                             ring_[confirmed_list_.head()].sent < ring_[sent_list_.head()].sent);
  // No loss yet: most often a rank is slow. The aggregator says so.
  const std::uint16_t oldest = confirmed ? confirmed_list_.head() : sent_list_.head();
  doubt_segments(ring_[oldest]);
  move(oldest, Flight::State::kLost);
  // Or all that was sent last is lost, which the aggregator can know only from something later.
  if (!sent_list_.empty()) {
    doubt_segments(ring_[sent_list_.tail()]);
    move(sent_list_.tail(), Flight::State::kLost);
  }
  rtt_.back_off();
  last_timeout_ = now;
}

FlightList& Channel::list(Flight::State state) {
  if (state == Flight::State::kSent) return sent_list_;
  return state == Flight::State::kConfirmed ? confirmed_list_ : lost_list_;
}

void Channel::move(std::uint16_t i, Flight::State state) {
  Flight& flight = ring_[i];
  if (flight.state != Flight::State::kDone) list(flight.state).remove(ring_, i);
  flight.state = state;
  if (state != Flight::State::kDone) list(state).push_back(ring_, i);
}

void Channel::send_again(std::uint16_t i, Time now, Sink& sink) {
  Flight& flight = ring_[i];
  move(i, Flight::State::kSent);
  flight.sent = now;
  flight.order = order_++;
  flight.repeats = std::min<std::uint8_t>(flight.repeats + 1, Flight::kMostRepeats);
  last_sent_ = now;
  ++stats_.data_packets;
  ++stats_.retransmissions;
  sink.add(session_.endpoint, history_.datagram(number_of(i), flight.count));
}

/// Chunk next_, for the first time; send_next() fills in what depends on the session.
void Channel::encode_next(const ChunkRange& range) {
  const PendingOperation& operation = *range.operation;
  std::byte* datagram = history_.datagram(next_);
  const proto::RoundingKey key{.seed = config_.seed,
                               .operation = operation.index,
                               .who = config_.rank,
                               .mode = config_.rounding};
  nat8::Tally tally;
  auto* payload = reinterpret_cast<std::uint8_t*>(datagram + sizeof(Header));
  encode_chunk(kernels_, operation.submission.operation.type, operation.submission.in,
               range.element, {payload, range.count}, key, config_.shift, tally);
  stats_.encoded += tally;

  Header header = proto::make_header(proto::Type::kData);
  header.job = Be32{config_.job};
  header.rank = Be16{config_.rank};
  header.operation = Be32{operation.index};
  header.element = Be64{range.element};
  header.fingerprint = Be64{operation.fingerprint};
  header.count = Be16{range.count};
  header.shift = static_cast<std::int8_t>(config_.shift);
  if (config_.rounding == proto::Rounding::kNearest) header.flags |= proto::kFlagNearest;
  if (tally.nans + tally.infs != 0) header.flags |= proto::kFlagSpecials;
  std::memcpy(datagram, &header, sizeof(header));
  history_.entry(next_) = {.operation_id = operation.id, .answered = false, .partial = false};
  ++encoded_;
}

/// Chunk next_, which is in the history.
void Channel::send_next(Time now, Sink& sink) {
  const std::uint16_t i = ring_index(next_);
  const std::uint32_t sequence = sequence_of(next_);
  std::byte* datagram = history_.datagram(next_);
  Header header;
  std::memcpy(&header, datagram, sizeof(header));
  if (header.epoch.value() != 0) ++stats_.retransmissions;  // in an earlier session
  header.epoch = Be32{session_.epoch};
  header.sequence = Be32{sequence};
  header.slot = Be16{static_cast<std::uint16_t>(sequence & (session_.window - 1U))};
  std::memcpy(datagram, &header, sizeof(header));

  ring_[i] = {.operation_id = history_.entry(next_).operation_id,
              .element = header.element.value(),
              .sent = now,
              .order = order_,
              .first_order = order_,
              .operation = header.operation.value(),
              .count = header.count.value(),
              .segmentable = segmentable_};
  ++order_;
  move(i, Flight::State::kSent);
  const std::uint64_t number = next_++;
  ++in_flight_;
  last_sent_ = now;
  ++stats_.data_packets;
  sink.add(session_.endpoint, history_.datagram(number, header.count.value()), segmentable_);
}

void Channel::send_heartbeat(Time now, Sink& sink) {
  last_heartbeat_ = now;
  // Traffic in both directions says as much as a heartbeat and its echo.
  if (now - last_sent_ < config_.heartbeat_interval &&
      now - last_heard_ < config_.heartbeat_interval) {
    return;
  }
  last_sent_ = now;
  sink.add(session_.endpoint, std::as_bytes(std::span(&heartbeat_, 1)));
}

std::optional<Completion> Channel::on_result(const Header& header,
                                             std::span<const std::uint8_t> bytes,
                                             std::span<const std::uint8_t> ranks, Time now) {
  std::uint64_t number = 0;
  if (!is_under_way(header.sequence.value(), number)) {
    const bool early = proto::serial_less(sequence_of(next_) - 1, header.sequence.value());
    ++(early ? stats_.rejected_packets : stats_.duplicate_results);
    return std::nullopt;
  }
  const std::uint16_t i = ring_index(number);
  Flight& flight = ring_[i];
  if (flight.state == Flight::State::kDone) {
    ++stats_.duplicate_results;
    return std::nullopt;
  }
  Header sent;
  std::memcpy(&sent, history_.datagram(number), sizeof(sent));
  const bool same = header.operation.value() == flight.operation &&
                    header.element.value() == flight.element && bytes.size() == flight.count &&
                    header.shift == config_.shift &&
                    header.fingerprint.value() == sent.fingerprint.value() &&
                    (ranks.empty() || may_have(sent, ranks));
  if (!same || kernels_.scan(bytes.data(), bytes.size()).malformed) {
    ++stats_.rejected_packets;
    return std::nullopt;
  }
  // An answered chunk was sent for the others' sake; its operation may be over.
  const bool lacked = !history_.entry(number).answered;
  if (lacked) {
    take(number, flight, header, bytes, ranks);
  } else if (contradicts(number, bytes, ranks)) {
    contradicted_ = true;
    return std::nullopt;
  }

  ++stats_.result_packets;
  if ((header.flags & proto::kFlagMulticast) != 0) ++stats_.multicast_results;
  if (flight.repeats == 0) {
    trust_segments(flight);
    rtt_.sample(now - flight.sent, now);
    window_.on_round_trip(now - flight.sent, rtt_.base(), flight.order, order_);
  }
  rtt_.progress();
  last_progress_ = now;
  // The result may be due to another rank's copy: it tells only of what this one sent before the
  // first sending.
  const std::uint64_t order = flight.first_order;
  move(i, Flight::State::kDone);
  --in_flight_;
  // There may be room for what was held back.
  if (ask_at_ != kNever) ask_for_held(kAtOnce, now);
  find_lost_results(order, now);
  while (oldest_ < next_ && ring_[ring_index(oldest_)].state == Flight::State::kDone) ++oldest_;
  const std::uint64_t id = flight.operation_id;
  return lacked ? operations_.complete_chunk(id) : std::nullopt;
}

/// Whether the result of what was `sent` may be of these ranks alone.
bool Channel::may_have(const Header& sent, std::span<const std::uint8_t> ranks) const {
  if (config_.straggler_deadline == 0) return false;
  if (!proto::may_be_partial(proto::from_fingerprint(sent.fingerprint.value()).reduction)) {
    return false;
  }
  return proto::count_ranks(ranks, config_.world) != 0;
}

/// The first result of a chunk.
void Channel::take(std::uint64_t number, const Flight& flight, const Header& header,
                   std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> ranks) {
  const Submission& submission = operations_.at(flight.operation_id).submission;
  const std::uint32_t present =
      ranks.empty() ? config_.world : proto::count_ranks(ranks, config_.world);
  nat8::Scale scale;
  if (proto::is_average(submission.operation.reduction)) {
    scale.divisor = present;
  } else if (present != config_.world) {
    scale = {.multiplier = config_.world, .divisor = present};
  }
  decode_chunk(kernels_, submission.operation.type, bytes, submission.out,
               submission.operation.length, flight.element, config_.shift, scale);
  if (!ranks.empty()) {
    operations_.note_partial(flight.operation_id, flight.count, ranks, config_.world);
    keep_partial(number, header, bytes, ranks);
  }
  history_.entry(number).answered = true;
  untouched_ = false;
  answered_end_ = std::max(answered_end_, number + 1);
  while (lacking_ < encoded_ && history_.entry(lacking_).answered) ++lacking_;
}

/// In the place of this rank's own values, which nobody needs any more.
void Channel::keep_partial(std::uint64_t number, const Header& header,
                           std::span<const std::uint8_t> bytes,
                           std::span<const std::uint8_t> ranks) {
  std::byte* datagram = history_.datagram(number);
  Header kept;
  std::memcpy(&kept, datagram, sizeof(kept));
  kept.type = proto::Type::kPartial;
  kept.flags = header.flags & (proto::kFlagNearest | proto::kFlagSpecials);
  std::memcpy(datagram, &kept, sizeof(kept));
  std::memcpy(datagram + sizeof(kept), bytes.data(), bytes.size());
  std::memcpy(datagram + sizeof(kept) + bytes.size(), ranks.data(), ranks.size());
  history_.entry(number).partial = true;
}

/// Whether a chunk's result differs from that of an earlier session.
bool Channel::contradicts(std::uint64_t number, std::span<const std::uint8_t> bytes,
                          std::span<const std::uint8_t> ranks) {
  const bool partial = history_.entry(number).partial;
  if (partial == ranks.empty()) return true;
  if (!partial) return false;
  const std::byte* kept = history_.datagram(number) + sizeof(Header);
  return std::memcmp(kept, bytes.data(), bytes.size()) != 0 ||
         std::memcmp(kept + bytes.size(), ranks.data(), ranks.size()) != 0;
}

/// Whether a chunk from oldest_ up to next_ has that sequence, and which.
bool Channel::is_under_way(std::uint32_t sequence, std::uint64_t& number) const {
  const std::int32_t ahead = proto::serial_distance(sequence_of(oldest_), sequence);
  if (ahead < 0 || oldest_ + static_cast<std::uint32_t>(ahead) >= next_) return false;
  number = oldest_ + static_cast<std::uint32_t>(ahead);
  return true;
}

/// What was sent well before a packet that is answered by now, long enough ago for the aggregator
/// to have asked any rank for what it lacked: the result is lost.
void Channel::find_lost_results(std::uint64_t order, Time now) {
  const Time patience = kRepairRoundTrips * rtt_.smoothed();
  while (!sent_list_.empty()) {
    const Flight& first = ring_[sent_list_.head()];
    if (first.order + proto::kReordering > order || now - first.sent < patience << first.repeats)
      return;
    move(sent_list_.head(), Flight::State::kLost);
    window_.on_loss(now, rtt_.smoothed());
  }
}

/// In which the latest copy of a chunk, which was sent again, may yet arrive. Twice as long each
/// time: where copies wait in a queue, more of them would only lengthen it.
Time Channel::patience(const Flight& flight) const {
  return rtt_.base() == kNever ? 0 : rtt_.base() << (flight.repeats - 1);
}

void Channel::on_nack(const Header& header, const proto::NackBody& body, Time now) {
  if (body.lacking.value() == 0) return on_mark(now);
  bool lost = false;
  for (std::uint32_t i = 0; i < proto::kNackChunks; ++i) {
    std::uint64_t number = 0;
    if ((body.lacking.value() >> i & 1) == 0) continue;
    if (!is_under_way(header.sequence.value() + i, number)) continue;
    const Flight& flight = ring_[ring_index(number)];
    if (flight.state == Flight::State::kDone || flight.state == Flight::State::kLost) continue;
    if (flight.repeats != 0 && now - flight.sent < patience(flight)) continue;
    doubt_segments(flight);
    move(ring_index(number), Flight::State::kLost);
    lost = true;
  }
  if (lost) window_.on_loss(now, rtt_.smoothed());
}

void Channel::on_pending(const Header& header, const proto::PendingBody& body, Time now) {
  std::uint64_t number = 0;
  if (!is_under_way(header.sequence.value(), number)) return;
  const std::uint16_t i = ring_index(number);
  Flight& flight = ring_[i];
  if (flight.state == Flight::State::kDone) return;
  if (body.missing_count.value() == 0) {
    // Nothing is confirmed, and no time-out says when there will be room: the shard is there.
    flight.held_back = config_.straggler_deadline != 0;
    if (flight.held_back && ask_at_ == kNever) ask_at_ = now + config_.min_rto;
    if (flight.missing_count == 0) flight.missing = body.missing.value();
    return;
  }
  // This answers a second copy: the first is there.
  if (flight.missing_count == 0) trust_segments(flight);
  flight.held_back = false;
  flight.missing = body.missing.value();
  flight.missing_count = body.missing_count.value();
  move(i, Flight::State::kConfirmed);
}

const Flight* Channel::oldest_of(std::uint64_t operation_id) const {
  for (std::uint64_t number = oldest_; number < next_; ++number) {
    const Flight& flight = ring_[ring_index(number)];
    if (flight.state != Flight::State::kDone && flight.operation_id == operation_id &&
        !history_.entry(number).answered) {
      return &flight;
    }
  }
  return nullptr;
}

}  // namespace natagg::worker
