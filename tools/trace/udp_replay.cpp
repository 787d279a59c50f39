// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/udp_replay.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "tools/trace/ticks.hpp"
#include "tools/trace/udp_ranks.hpp"

namespace natagg::tools {
namespace {

using proto::Type;
using ChunkKey = std::pair<std::size_t, std::uint32_t>;  // session, recorded sequence

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kFirstTimeout = 20 * kMillisecond;  // of an answer; then twice as long
constexpr std::int64_t kGivesUp = 5'000 * kMillisecond;
constexpr std::size_t kMostStored = 65'536;  // packets that wait to be sent or answered
constexpr int kPacketsAtOnce = 16;           // between two looks at what has arrived

/// What has been sent of a chunk that is not answered.
struct Flight {
  std::map<std::uint16_t, std::vector<std::byte>> datagrams;  // by rank, as they were sent
  std::uint64_t complete_ticks = 0;                           // when the last was; 0: not yet
  std::int64_t complete_at = 0;
  std::int64_t resend_at = 0;
  std::int64_t timeout = kFirstTimeout;
};

class UdpReplay {
 public:
  UdpReplay(const TraceSurvey& survey, const UdpTarget& target, const Pace& pace,
            std::uint32_t first_job, RankNetwork& network, ReplayReport& report)
      : survey_(survey),
        in_flight_(target.in_flight),
        first_job_(first_job),
        report_(report),
        ledger_(survey),
        ranks_(survey, target, network),
        pacer_(pace, survey.first_time()) {}

  void play() {
    const std::int64_t begin = monotonic_ns();
    TraceMerge trace(survey_.paths());
    int since_look = 0;
    while (const auto packet = trace.next()) {
      const proto::Header header = proto::read_header(packet->datagram);
      const bool live = header.type == Type::kData || header.type == Type::kHeartbeat ||
                        header.type == Type::kLeave;
      const auto session = live ? survey_.session_of(packet->to, header) : std::nullopt;
      if (!session || header.rank.value() >= survey_.sessions()[*session].world()) continue;
      if (!ledger_.live(*session)) form(*session);
      if (const auto due = pacer_.next(packet->time)) wait_until(*due);
      if (header.type == Type::kLeave) wait_for([&] { return !awaits(*session); });
      if (header.type == Type::kLeave && !ledger_.may_leave(*session)) continue;
      wait_for([&] { return awaiting_.size() < in_flight_; });
      take(*session, header, *packet);
      if (++since_look % kPacketsAtOnce == 0) look(0);
    }
    wait_for([&] { return awaiting_.empty(); });
    report_.seconds += static_cast<double>(monotonic_ns() - begin - forming_) * 1e-9;
    ranks_.leave(ledger_);
    ledger_.finish();
    report_.add(ledger_);
  }

 private:
  void form(std::size_t session) {
    const std::int64_t begin = monotonic_ns();
    ranks_.form(session, first_job_ + static_cast<std::uint32_t>(session), ledger_,
                [this](std::span<const std::byte> datagram) { on_datagram(datagram); });
    forming_ += monotonic_ns() - begin;
    pacer_.postpone(monotonic_ns() - begin);
  }

  void take(std::size_t session, const proto::Header& header, const TracePacket& packet) {
    std::vector<std::byte> datagram(packet.datagram.begin(), packet.datagram.end());
    const std::uint16_t rank = header.rank.value();
    if (header.type != Type::kData) {
      ledger_.translate(session, datagram);
      return send(session, rank, datagram);
    }
    const std::uint32_t sequence = header.sequence.value();
    if (ledger_.may_send(session, sequence)) return send_data(session, header, std::move(datagram));
    if (++stored_ > kMostStored) {
      throw TraceError(survey_.name() + ": " + to_string(packet.place) +
                       " and too many before it wait for chunks that the trace does not finish");
    }
    ledger_.hold(session, sequence,
                 {.place = packet.place, .from = packet.from, .datagram = std::move(datagram)});
  }

  void send_data(std::size_t session, const proto::Header& header,
                 std::vector<std::byte> datagram) {
    const std::uint32_t sequence = header.sequence.value();
    const std::uint16_t rank = header.rank.value();
    ledger_.translate(session, datagram);
    ++report_.data_packets;
    report_.values += header.count.value();
    send(session, rank, datagram);
    const TraceChunk* chunk = survey_.sessions()[session].chunk(sequence);
    if (chunk == nullptr || !chunk->complete() || ledger_.answered(session, sequence)) return;
    Flight& flight = flights_[{session, sequence}];
    flight.datagrams.try_emplace(rank, std::move(datagram));
    if (flight.complete_ticks != 0 ||
        flight.datagrams.size() < survey_.sessions()[session].world()) {
      return;
    }
    flight.complete_ticks = ticks();
    flight.complete_at = monotonic_ns();
    flight.resend_at = flight.complete_at + flight.timeout;
    awaiting_.push_back({session, sequence});
  }

  void send(std::size_t session, std::uint16_t rank, std::span<const std::byte> datagram) {
    ++report_.packets;
    report_.bytes += datagram.size() + proto::kIpUdpBytes;
    ranks_.send(session, rank, datagram);
  }

  void on_datagram(std::span<const std::byte> datagram) {
    const auto answer = ledger_.take(datagram);
    if (!answer || !answer->first) return;
    const ChunkKey key{answer->session, answer->sequence};
    if (const auto node = flights_.extract(key); !node.empty()) {
      if (node.mapped().complete_ticks != 0) {
        report_.latency.add(ticks() - node.mapped().complete_ticks);
      }
    }
    std::erase(awaiting_, key);
    for (HeldPacket& held : ledger_.release(answer->session, answer->sequence)) {
      --stored_;
      const proto::Header header = proto::read_header(held.datagram);
      send_data(answer->session, header, std::move(held.datagram));
    }
  }

  /// Takes what has arrived, waiting up to so long, and does what time demands.
  void look(std::int64_t nanoseconds) {
    ranks_.receive(nanoseconds,
                   [this](std::span<const std::byte> datagram) { on_datagram(datagram); });
    ranks_.heartbeat(ledger_);
    const std::int64_t now = monotonic_ns();
    std::erase_if(awaiting_, [&](const ChunkKey& key) {
      Flight& flight = flights_[key];
      if (now - flight.complete_at > kGivesUp) return flights_.erase(key) != 0;
      if (now >= flight.resend_at) send_again(key, flight, now);
      return false;
    });
  }

  void send_again(const ChunkKey& key, Flight& flight, std::int64_t now) {
    flight.timeout *= 2;
    flight.resend_at = now + flight.timeout;
    for (const auto& [rank, datagram] : flight.datagrams) {
      ++report_.retransmissions;
      ranks_.send(key.first, rank, datagram);
    }
  }

  [[nodiscard]] bool awaits(std::size_t session) const {
    return std::ranges::any_of(awaiting_,
                               [&](const ChunkKey& key) { return key.first == session; });
  }

  /// Ends, since what awaits an answer does not wait for ever.
  template <typename Condition>
  void wait_for(const Condition& condition) {
    while (!condition()) look(kMillisecond);
  }

  void wait_until(std::int64_t due) {
    for (std::int64_t left = due - monotonic_ns(); left > 0; left = due - monotonic_ns()) {
      look(left);
    }
  }

  const TraceSurvey& survey_;
  std::size_t in_flight_;
  std::uint32_t first_job_;
  ReplayReport& report_;
  ReplayLedger ledger_;
  UdpRanks ranks_;
  Pacer pacer_;
  std::int64_t forming_ = 0;
  std::size_t stored_ = 0;
  std::map<ChunkKey, Flight> flights_;
  std::deque<ChunkKey> awaiting_;  // sent in full, not answered
};

}  // namespace

ReplayReport replay_over_udp(const TraceSurvey& survey, const UdpTarget& target, const Pace& pace,
                             std::uint64_t loops) {
  ReplayReport report;
  report.target = "the aggregator at " + proto::to_string(target.aggregator);
  const auto network = make_network(target.network, target.aggregator);
  report.latency_meaning = "last DATA of a chunk to its RESULT";
  const std::int64_t begin = monotonic_ns();
  const std::uint64_t begin_ticks = ticks();
  std::uint32_t job = target.first_job;
  for (; report.loops < loops; ++report.loops) {
    UdpReplay(survey, target, pace, job, *network, report).play();
    job += static_cast<std::uint32_t>(survey.sessions().size());
  }
  report.ticks_per_second = static_cast<double>(ticks() - begin_ticks) * 1e9 /
                            static_cast<double>(monotonic_ns() - begin);
  return report;
}

}  // namespace natagg::tools
