// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/shard_replay.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <thread>

#include "aggregator/core/shard.hpp"
#include "tools/trace/ticks.hpp"

namespace natagg::tools {
namespace {

using aggregator::Outgoing;
using aggregator::Shard;
using proto::Type;

constexpr std::int64_t kTickInterval = 10'000'000;
constexpr int kMostTicks = 1000;  // for one gap in the trace: beyond, nothing new happens

std::vector<Shard> make_shards(const TraceSurvey& survey) {
  aggregator::ShardConfig config;
  config.max_jobs = static_cast<std::uint16_t>(std::min<std::size_t>(
      std::max<std::size_t>(config.max_jobs, survey.sessions().size()), UINT16_MAX));
  config.max_workers = proto::kMaxWorld;
  for (const TraceSession& session : survey.sessions()) {
    config.max_window = std::max(config.max_window, std::bit_ceil(session.window()));
  }
  std::vector<Shard> shards;
  for (std::size_t i = 0; i < survey.shards().size(); ++i) shards.emplace_back(config);
  return shards;
}

class ShardReplay {
 public:
  /// Plays the trace once on `shards`, from `begin` in their time on, as jobs from `first_job` on.
  ShardReplay(const TraceSurvey& survey, const Pace& pace, std::vector<Shard>& shards,
              std::int64_t begin, std::uint32_t first_job, ReplayReport& report)
      : survey_(survey),
        report_(report),
        shards_(shards),
        offset_(begin - survey.first_time()),
        first_job_(first_job),
        ledger_(survey),
        pacer_(pace, survey.first_time()),
        now_(begin),
        next_tick_(now_) {}

  /// Returns the shards' time at the end, when they have forgotten the jobs.
  std::int64_t play() {
    TraceMerge trace(survey_.paths());
    while (const auto packet = trace.next()) {
      const proto::Header header = proto::read_header(packet->datagram);
      const bool live = header.type == Type::kData || header.type == Type::kHeartbeat ||
                        header.type == Type::kLeave;
      const auto session = live ? survey_.session_of(packet->to, header) : std::nullopt;
      if (!session) continue;
      if (const auto due = pacer_.next(packet->time)) wait_until(*due);
      pass_time(packet->time + offset_);
      if (!ledger_.live(*session)) form(*session);
      if (header.type == Type::kLeave && !ledger_.may_leave(*session)) continue;
      HeldPacket next{.place = packet->place,
                      .from = packet->from,
                      .datagram = {packet->datagram.begin(), packet->datagram.end()}};
      if (header.type == Type::kData && !ledger_.may_send(*session, header.sequence.value())) {
        ledger_.hold(*session, header.sequence.value(), std::move(next));
      } else {
        send(*session, std::move(next));
      }
    }
    ledger_.finish();
    report_.add(ledger_);
    leave();
    return now_;
  }

 private:
  static void wait_until(std::int64_t due) {
    const std::int64_t left = due - monotonic_ns();
    if (left > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left));
  }

  [[nodiscard]] Shard& shard(std::size_t session) {
    return shards_[survey_.shard_index(survey_.sessions()[session].shard())];
  }

  void pass_time(std::int64_t time) {
    now_ = std::max(now_, time);
    for (int ticks = 0; next_tick_ <= now_; ++ticks, next_tick_ += kTickInterval) {
      if (ticks == kMostTicks) next_tick_ = now_;
      for (Shard& shard : shards_) {
        for (auto out = shard.tick(next_tick_); !out.empty(); out = shard.tick(next_tick_)) {
          for (const Outgoing& outgoing : out) static_cast<void>(ledger_.take(whole(outgoing)));
        }
      }
    }
  }

  void leave() {
    for (std::size_t index = 0; index < survey_.sessions().size(); ++index) {
      if (!ledger_.live(index)) continue;
      const TraceSession& session = survey_.sessions()[index];
      for (std::uint16_t rank = 0; rank < session.world(); ++rank) {
        static_cast<void>(shard(index).receive(ledger_.control(index, rank, Type::kLeave),
                                               {.endpoint = session.joins()[rank].from}, now_));
      }
    }
    pass_time(now_ + 2 * kTickInterval);
  }

  /// The bytes of a datagram, without the padding; valid until the next call.
  std::span<const std::byte> whole(const Outgoing& outgoing) {
    const auto body = std::as_bytes(outgoing.body);
    datagram_.assign(outgoing.head.begin(), outgoing.head.end());
    datagram_.insert(datagram_.end(), body.begin(), body.end());
    return datagram_;
  }

  void form(std::size_t index) {
    const TraceSession& session = survey_.sessions()[index];
    const std::uint32_t job = first_job_ + static_cast<std::uint32_t>(index);
    std::string refusal = "the shard does not answer";
    for (std::uint16_t rank = 0; rank < session.world(); ++rank) {
      const auto join = ledger_.join(index, rank, job, rank + 1U);
      for (const Outgoing& out :
           shard(index).receive(join, {.endpoint = session.joins()[rank].from}, now_)) {
        const proto::Header header = proto::read_header(out.head);
        if (header.type == Type::kRefuse) {
          refusal = to_string(proto::read_body<proto::RefuseBody>(out.head).reason);
        }
        if (header.type != Type::kWelcome) continue;
        const auto body = proto::read_body<proto::WelcomeBody>(out.head);
        if (body.state != proto::SessionState::kReady) continue;
        ledger_.set_live(index, {.job = job,
                                 .epoch = header.epoch.value(),
                                 .first_sequence = body.first_sequence.value()});
      }
    }
    if (ledger_.live(index)) return;
    throw TraceError(survey_.name() + ": " + session.describe() + " cannot be formed: " + refusal);
  }

  /// Sends a packet, and those that waited for its answer.
  void send(std::size_t session, HeldPacket first) {
    std::deque<std::pair<std::size_t, HeldPacket>> queue;
    queue.emplace_back(session, std::move(first));
    while (!queue.empty()) {
      auto [index, packet] = std::move(queue.front());
      queue.pop_front();
      for (const ReplayLedger::Answer& answer : receive(index, packet)) {
        for (HeldPacket& held : ledger_.release(answer.session, answer.sequence)) {
          queue.emplace_back(answer.session, std::move(held));
        }
      }
    }
  }

  const std::vector<ReplayLedger::Answer>& receive(std::size_t index, HeldPacket& packet) {
    ledger_.translate(index, packet.datagram);
    Shard& target = shard(index);
    const aggregator::Peer peer{.endpoint = packet.from};
    const std::uint64_t begin = ticks();
    const std::span<const Outgoing> out = target.receive(packet.datagram, peer, now_);
    const std::uint64_t spent = ticks() - begin;

    report_.ticks += spent;
    report_.latency.add(spent);
    ++report_.packets;
    report_.bytes += packet.datagram.size() + proto::kIpUdpBytes;
    const proto::Header header = proto::read_header(packet.datagram);
    if (header.type == Type::kData) {
      ++report_.data_packets;
      report_.values += header.count.value();
    }
    answers_.clear();
    for (const Outgoing& outgoing : out) {
      if (const auto answer = ledger_.take(whole(outgoing))) answers_.push_back(*answer);
    }
    return answers_;
  }

  const TraceSurvey& survey_;
  ReplayReport& report_;
  std::vector<Shard>& shards_;
  std::int64_t offset_;  // from the trace's time to the shards'
  std::uint32_t first_job_;
  ReplayLedger ledger_;
  Pacer pacer_;
  std::int64_t now_;
  std::int64_t next_tick_;
  std::vector<std::byte> datagram_;
  std::vector<ReplayLedger::Answer> answers_;
};

}  // namespace

ReplayReport replay_into_shards(const TraceSurvey& survey, const Pace& pace, std::uint64_t loops) {
  ReplayReport report;
  report.target = std::to_string(survey.shards().size()) + " shards in this process, kernels " +
                  std::string(default_kernels().name);
  report.latency_meaning = "a packet in the shard";
  std::vector<Shard> shards = make_shards(survey);
  std::int64_t now = survey.first_time();
  std::uint32_t job = 1;
  const std::int64_t begin = monotonic_ns();
  const std::uint64_t begin_ticks = ticks();
  for (; report.loops < loops; ++report.loops) {
    now = ShardReplay(survey, pace, shards, now, job, report).play();
    job += static_cast<std::uint32_t>(survey.sessions().size());
  }
  report.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  report.ticks_per_second = static_cast<double>(ticks() - begin_ticks) / report.seconds;
  report.busy_seconds = static_cast<double>(report.ticks) / report.ticks_per_second;
  for (const aggregator::CounterInfo& info : aggregator::kCounters) {
    std::uint64_t count = 0;
    for (const Shard& shard : shards) count += shard.counters()[info.counter];
    if (count != 0) report.counters.emplace_back(info.name, count);
  }
  return report;
}

}  // namespace natagg::tools
