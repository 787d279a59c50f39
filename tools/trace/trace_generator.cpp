// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/trace_generator.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <stdexcept>

#include "aggregator/core/shard.hpp"
#include "proto/packet.hpp"
#include "tools/trace/trace_writer.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::tools {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBegin = 1'767'225'600 * kSecond;  // 2026-01-01
constexpr std::int64_t kTickInterval = kSecond / 100;
constexpr std::int64_t kStallLimit = 60 * kSecond;         // of virtual time without a completion
constexpr std::uint32_t kAggregatorAddress = 0x0A00'0001;  // 10.0.0.1
constexpr std::uint32_t kWorkerNet = 0x0A01'0000;          // 10.1.0.0
constexpr std::uint16_t kFirstWorkerPort = 40'000;

/// Operations under way in a worker: with the next one there, the window does not run empty when
/// one ends.
constexpr std::size_t kUnderWay = 2;

struct TraceWorker {
  struct Result {
    Tensor values;
    bool awaited = false;
  };

  worker::Stream stream;
  proto::Endpoint self;
  std::uint16_t job = 0;
  std::uint16_t rank = 0;
  std::array<Result, kUnderWay> results;  // operation i's is at i % kUnderWay
  std::size_t submitted = 0;
  std::size_t ended = 0;
  bool closing = false;
};

class TraceGenerator {
 public:
  TraceGenerator(const TraceJobOptions& options, const std::string& path)
      : options_(options), network_(options.network), writer_(path) {
    if (options.shards == 0 || options.shards > proto::kMaxShards) {
      throw std::invalid_argument("shards are 1 to 256");
    }
    if (options.network.gigabits <= 0) throw std::invalid_argument("the links' rate is above 0");
    add_shards();
    for (std::uint16_t job = 0; job < options.jobs; ++job) {
      for (std::uint16_t rank = 0; rank < world(); ++rank) add_worker(job, rank);
    }
  }

  GeneratedTrace run() {
    while (!std::ranges::all_of(workers_, [](const TraceWorker& worker) {
      return worker.stream.state() == worker::Stream::State::kClosed;
    })) {
      now_ = std::max(now_, next_event());
      if (now_ - last_progress_ > kStallLimit) throw std::runtime_error("the network is too bad");
      handle();
    }
    writer_.close();
    trace_.seconds = static_cast<double>(now_ - kBegin) / static_cast<double>(kSecond);
    for (const TraceWorker& worker : workers_) {
      trace_.retransmissions += worker.stream.stats().retransmissions;
    }
    return trace_;
  }

 private:
  [[nodiscard]] std::uint16_t world() const {
    return static_cast<std::uint16_t>(options_.inputs.size());
  }

  void add_shards() {
    aggregator::ShardConfig config;
    config.shards = options_.shards;
    config.max_jobs = std::max(config.max_jobs, options_.jobs);
    config.max_workers = proto::kMaxWorld;
    config.max_window = std::max(config.max_window, std::bit_ceil(options_.window));
    config.first_sequence = options_.first_sequence;
    config.first_epoch = options_.first_epoch;
    for (; config.index < options_.shards; ++config.index) shards_.emplace_back(config);
  }

  void add_worker(std::uint16_t job, std::uint16_t rank) {
    worker::StreamConfig config;
    config.aggregators = {{kAggregatorAddress, proto::kDefaultPort}};
    config.job = job;
    config.rank = rank;
    config.world = world();
    config.seed = options_.seed + job;
    config.rounding = options_.rounding;
    config.shift = options_.shift;
    config.instance = workers_.size() + 1;
    config.values = options_.values;
    config.mtu = options_.mtu;
    config.window = options_.window;
    const auto number = static_cast<std::uint32_t>(workers_.size() + 1);
    TraceWorker& worker = workers_.emplace_back(
        TraceWorker{.stream = worker::Stream(config, now_),
                    .self = {kWorkerNet + number,
                             static_cast<std::uint16_t>(kFirstWorkerPort + number % 20'000)},
                    .job = job,
                    .rank = rank,
                    .results = {}});
    submit(worker);
  }

  void submit(TraceWorker& worker) {
    const Tensor& input = options_.inputs[worker.rank];
    for (; worker.submitted < options_.operations; ++worker.submitted) {
      TraceWorker::Result& result = worker.results[worker.submitted % kUnderWay];
      if (result.awaited) return;
      if (worker.submitted < kUnderWay) result.values = Tensor(input.type(), input.size());
      result.awaited = true;
      static_cast<void>(worker.stream.submit({.operation = {.length = input.size(),
                                                            .type = input.type(),
                                                            .reduction = options_.reduction},
                                              .in = input.bytes().data(),
                                              .out = result.values.bytes().data()}));
    }
  }

  [[nodiscard]] std::int64_t next_event() const {
    std::int64_t next = next_tick_;
    if (const auto arrival = network_.next_arrival()) next = std::min(next, *arrival);
    for (const TraceWorker& worker : workers_) next = std::min(next, worker.stream.next_event());
    return next;
  }

  void handle() {
    while (network_.next_arrival().value_or(now_ + 1) <= now_) deliver(network_.take());
    if (next_tick_ <= now_) tick();
    for (TraceWorker& worker : workers_) {
      if (worker.stream.next_event() <= now_) run(worker);
    }
  }

  void deliver(const VirtualDatagram& datagram) {
    if (datagram.to.address == kAggregatorAddress) {
      record(datagram.from, datagram.to, datagram.bytes);
      const auto shard = static_cast<std::size_t>(datagram.to.port - proto::kDefaultPort);
      return send(shard, shards_[shard].receive(datagram.bytes, {.endpoint = datagram.from}, now_));
    }
    TraceWorker& worker = workers_[datagram.to.address - kWorkerNet - 1];
    worker.stream.receive(datagram.bytes, datagram.from, now_);
    run(worker);
  }

  void tick() {
    next_tick_ = now_ + kTickInterval;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      for (auto out = shards_[i].tick(now_); !out.empty(); out = shards_[i].tick(now_)) {
        send(i, out);
      }
    }
  }

  void run(TraceWorker& worker) {
    collect(worker);
    if (worker.ended == options_.operations && !worker.closing) {
      worker.closing = true;
      worker.stream.close(now_);
    }
    std::array<worker::Outgoing, 32> batch;
    while (const std::size_t count = worker.stream.transmit(now_, batch)) {
      for (const worker::Outgoing& out : std::span(batch).first(count)) {
        if (out.datagram.size() + proto::kIpUdpBytes > options_.mtu) continue;
        network_.send(worker.self, out.to, out.datagram, now_);
      }
    }
    collect(worker);
  }

  void collect(TraceWorker& worker) {
    while (const auto completion = worker.stream.poll_completion()) {
      if (completion->status != NATAGG_OK) {
        throw std::runtime_error("an operation fails: " + worker.stream.failure().message);
      }
      TraceWorker::Result& result = worker.results[completion->id % kUnderWay];
      if (worker.job == 0 && options_.on_result) {
        options_.on_result(completion->id, worker.rank, result.values);
      }
      result.awaited = false;
      ++worker.ended;
      last_progress_ = now_;
    }
    submit(worker);
  }

  void send(std::size_t shard, std::span<const aggregator::Outgoing> outgoing) {
    const proto::Endpoint from{kAggregatorAddress,
                               static_cast<std::uint16_t>(proto::kDefaultPort + shard)};
    for (const aggregator::Outgoing& out : outgoing) {
      const auto body = std::as_bytes(out.body);
      datagram_.assign(out.head.begin(), out.head.end());
      datagram_.insert(datagram_.end(), body.begin(), body.end());
      datagram_.resize(datagram_.size() + out.padding);
      for (const aggregator::Peer& peer : out.to) {
        record(from, peer.endpoint, datagram_);
        network_.send(from, peer.endpoint, datagram_, now_);
      }
    }
  }

  void record(const proto::Endpoint& from, const proto::Endpoint& to,
              std::span<const std::byte> datagram) {
    ++trace_.packets;
    writer_.write(now_, from, to, datagram);
  }

  const TraceJobOptions& options_;
  VirtualNetwork network_;
  TraceWriter writer_;
  std::vector<aggregator::Shard> shards_;
  std::deque<TraceWorker> workers_;
  std::int64_t now_ = kBegin;
  std::int64_t next_tick_ = kBegin;
  std::int64_t last_progress_ = kBegin;
  std::vector<std::byte> datagram_;
  GeneratedTrace trace_;
};

}  // namespace

GeneratedTrace generate_trace(const TraceJobOptions& options, const std::string& path) {
  if (options.inputs.empty() || options.operations == 0) {
    throw std::invalid_argument("there is nothing to reduce");
  }
  return TraceGenerator(options, path).run();
}

}  // namespace natagg::tools
