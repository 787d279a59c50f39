// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A shard under a program of packets from several sources, right or wrong, and of passing time.
// shard_witness.hpp says what must hold after each step.

#include <array>
#include <deque>
#include <map>

#include "datagrams.hpp"
#include "proto/operation.hpp"
#include "shard_witness.hpp"

namespace natagg::fuzz {
namespace {

using aggregator::Peer;
using aggregator::ShardConfig;
using aggregator::Time;
using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Header;
using proto::Type;

constexpr std::uint16_t kValues = 128;
constexpr std::size_t kSources = 6;
constexpr std::size_t kRemembered = 40;
constexpr std::size_t kPartialJob = 1;  // its chunks do not wait for stragglers

ShardConfig config_of(Input& input) {
  const std::size_t flags = input.byte();
  ShardConfig config;
  config.shards = static_cast<std::uint16_t>(1 + flags % 3);
  config.max_jobs = static_cast<std::uint16_t>(1 + (flags >> 2) % 3);
  config.max_workers = (flags >> 4 & 1) != 0 ? 70 : 3;
  config.max_window = static_cast<std::uint16_t>(1U << (flags >> 5 & 3));
  config.max_values = (flags >> 7) != 0 ? 2 * kValues : kValues;
  const std::size_t more = input.byte();
  config.multicast_address = (more & 1) != 0 ? 0xEF4E'4100 : 0;
  config.multicast_port = 4790;
  config.first_epoch = (more & 2) != 0 ? 0xFFFF'FFFE : 1;
  config.first_sequence = (more & 4) != 0 ? 0xFFFF'FFFE : static_cast<std::uint32_t>(more >> 3 & 3);
  if ((more & 0x80) != 0) {  // the first job has a key, and the other one may
    proto::JobKeys keys;
    keys.emplace(1, job_key(1));
    if ((more & 0x40) != 0) keys.emplace(2, job_key(2));
    config.keys = std::make_shared<const proto::JobKeys>(std::move(keys));
    config.jobs_without_key = (more & 0x40) == 0;
    config.entropy = entropy(0xA5);
  }
  return config;
}

/// Runs a program: its own idea of each job, by which most packets are right.
class Program {
 public:
  explicit Program(std::span<const std::uint8_t> bytes)
      : input_(bytes), config_(config_of(input_)), witness_(config_) {}

  void run() {
    if (witness_.has_key(1) && input_.below(4) != 0) connect();
    while (!input_.empty()) step();
    witness_.expect_all_forgotten(now_);
  }

 private:
  struct Job {
    std::uint16_t world = 0;
    std::uint16_t window = 1;
    std::uint32_t chunk = 0;  // about where the job is
  };

  void step() {
    const std::size_t what = input_.byte();
    const std::size_t job = what >> 4 & 1;
    const std::size_t rank = what >> 5 & 3;
    switch (what % 16) {
      case 0:
      case 1: return join(job, rank);
      case 2: return join_all(job);
      case 3:
      case 4:
      case 5: return data(job, rank);
      case 6:
      case 7: return chunk_of_all(job);
      case 8: return control(job, rank, Type::kHeartbeat);
      case 9: return control(job, rank, Type::kLeave);
      case 10: return hello();
      case 11: return raw();
      case 12: return replay();
      case 13: return pass(Time{1'000'000} << (what >> 4));
      case 14: return pass(Time{input_.byte()} * 1'000'000);
      default: return control(job, rank, static_cast<Type>(input_.below(16)));
    }
  }

  /// To the state in which chunks are added, which bytes would find seldom where jobs have keys.
  void connect() {
    jobs_[0].world = static_cast<std::uint16_t>(1 + input_.below(3));
    for (std::size_t rank = 0; rank < jobs_[0].world; ++rank) {
      for (int i = 0; i < 2; ++i) {  // before the challenge, and after
        write_join(0, rank, 0);
        seal(0, rank);
        witness_.receive(datagram_, source(rank), now_);
      }
    }
    pass(200'000'000);
  }

  static Peer source(std::size_t i) {
    return {.endpoint = endpoint_of(static_cast<std::uint16_t>(i)), .link = i / 2};
  }

  void join(std::size_t job, std::size_t rank) {
    const std::size_t terms = input_.byte();
    Job& known = jobs_[job];
    // Before the first, and now and then, the world changes.
    if (known.world == 0 || terms >= 0xF0) {
      known.world = static_cast<std::uint16_t>((terms & 8) != 0 ? 66 : 1 + terms % 3);
    }
    known.window = static_cast<std::uint16_t>(1U << (terms >> 4 & 3));
    send_join(job, rank, terms);
  }

  void join_all(std::size_t job) {
    const std::size_t terms = input_.byte() & 0x7FU;
    Job& known = jobs_[job];
    if (known.world == 0) known.world = static_cast<std::uint16_t>(1 + terms % 3);
    for (std::size_t rank = 0; rank < known.world; ++rank) send_join(job, rank, terms);
    known.chunk = 0;
  }

  void send_join(std::size_t job, std::size_t rank, std::size_t terms) {
    const auto number = static_cast<std::uint32_t>(job + 1);
    if (witness_.has_key(number)) join_anew(number, static_cast<std::uint16_t>(rank), terms);
    write_join(job, rank, terms);
    const Datagram plain = datagram_;
    const auto challenges = [&] { return witness_.counters()[aggregator::Counter::kChallenges]; };
    const std::uint64_t before = challenges();
    deliver(source(rank), job, rank);
    if (challenges() == before) return;
    datagram_ = plain;  // with the answer to the challenge
    deliver(source(rank), job, rank);
  }

  /// As a worker does whose session is gone, and as one that takes its place.
  void join_anew(std::uint32_t job, std::uint16_t rank, std::size_t terms) {
    const auto place = static_cast<std::uint16_t>((terms & 0x20) != 0 ? terms >> 1 & 1 : 0);
    if (terms >= 0xE0) witness_.holders().restart(job, rank);
    if ((terms & 0x10) != 0) witness_.holders().renew(job, rank, place);
  }

  void write_join(std::size_t job, std::size_t rank, std::size_t terms) {
    Header header = make_header(job, rank, Type::kJoin);
    header.epoch = Be32{0};
    if ((terms & 4) != 0) header.flags = proto::kFlagMulticast;
    const bool wide = (terms & 0x40) != 0;
    proto::JoinBody body{};
    body.instance = Be64{1 + rank + (terms >= 0xE0 ? 100U : 0U)};
    body.world = Be16{jobs_[job].world};
    body.values = Be16{static_cast<std::uint16_t>(wide ? 2 * kValues : kValues)};
    body.window = Be16{jobs_[job].window};
    body.shards = Be16{2};
    if ((terms & 0x10) != 0) body.flags = proto::kJoinWaited;
    if ((terms & 0x20) != 0) {
      // Of a session that was lost, or of one that runs here.
      body.members = Be64{witness_.members(header.job.value())};
      body.resume = Be32{config_.first_sequence + jobs_[job].chunk};
      body.shard = Be16{static_cast<std::uint16_t>(terms >> 1 & 1)};
      body.moves = Be16{static_cast<std::uint16_t>(terms & 1)};
      if ((terms & 8) != 0) body.flags |= proto::kJoinUntouched;
      body.held = Be32{static_cast<std::uint32_t>(terms & 7)};
    }
    if (job == kPartialJob) {
      body.stragglers = Be16{5};
      body.quorum = Be16{1};
    }
    body.rounding = 1;
    write(datagram_, header, body, proto::datagram_size(body.values.value()));
  }

  void data(std::size_t job, std::size_t rank) {
    const std::size_t place = input_.byte();
    const Job& known = jobs_[job];
    const std::uint32_t ahead = static_cast<std::uint32_t>(place % 8) - 3;
    write_data(job, rank, known.chunk + (place < 0xC0 ? 0 : ahead), place);
    const std::size_t from = (place & 0x38) == 0x38 ? input_.below(kSources) : rank;
    deliver(source(from), job, rank);
  }

  void chunk_of_all(std::size_t job) {
    Job& known = jobs_[job];
    const std::size_t place = input_.byte();
    if (place >= 0xE0) return chunks_of_all_but_one(job, place & 3);
    for (std::size_t rank = 0; rank < known.world; ++rank) {
      write_data(job, rank, known.chunk, place & 0x3F);
      deliver(source(rank), job, rank);
    }
    ++known.chunk;
  }

  /// As many as are kept for it, and more; unchanged, so that programs are short.
  void chunks_of_all_but_one(std::size_t job, std::size_t late) {
    Job& known = jobs_[job];
    for (std::uint32_t i = 0; i < 20; ++i, ++known.chunk) {
      for (std::size_t rank = 0; rank < known.world; ++rank) {
        if (rank == late) continue;
        write_data(job, rank, known.chunk, 8);
        if (seal(job, rank)) witness_.receive(datagram_, source(rank), now_);
      }
      pass(10'000'000);
    }
  }

  void write_data(std::size_t job, std::size_t rank, std::uint32_t chunk, std::size_t place) {
    Header header = make_header(job, rank, Type::kData);
    const std::uint32_t sequence = config_.first_sequence + chunk;
    const std::uint16_t count = (place & 7) == 0 ? 1 : kValues;
    const std::uint32_t window = std::min(jobs_[job].window, config_.max_window);
    header.sequence = Be32{sequence};
    header.slot = Be16{static_cast<std::uint16_t>(sequence & (window - 1))};
    header.operation = Be32{chunk / 4};
    header.element = Be64{std::uint64_t{chunk % 4} * kValues};
    const bool partial = job == kPartialJob && chunk % 64 < 56;
    header.fingerprint = Be64{proto::fingerprint(
        {.length = 4 * kValues,
         .reduction = partial ? proto::Reduction::kPartialSum : proto::Reduction::kSum})};
    header.count = Be16{count};
    header.flags = proto::kFlagNearest;
    write(datagram_, header, sizeof(Header) + count);
    // Large codes, so that slots become wide, and specials.
    constexpr std::array<std::uint8_t, 8> kBytes = {0x40, 0x3C, 0xBC, 0x05, 0x41, 0xC1, 0x42, 0x20};
    std::memset(datagram_.data() + sizeof(Header), kBytes[place >> 3 & 7], count);
    if (!partial || (place & 0x80) == 0) return;
    // As if an aggregator that is lost had answered it, with rank 0 at least.
    header.type = Type::kPartial;
    std::memcpy(datagram_.data(), &header, sizeof(header));
    const std::size_t world = std::max<std::size_t>(1, jobs_[job].world);  // none has joined yet
    datagram_.resize(datagram_.size() + proto::rank_set_bytes(world), std::byte{0});
    datagram_[sizeof(Header) + count] = std::byte{1};
  }

  void control(std::size_t job, std::size_t rank, Type type) {
    const std::size_t padding = input_.byte();
    write(datagram_, make_header(job, rank, type), sizeof(Header) + padding % 80);
    if (type == Type::kLeave && datagram_.size() >= sizeof(Header) + sizeof(proto::LeaveBody)) {
      proto::LeaveBody body{};
      const bool nobody = (padding & 0x40) != 0;
      body.rank =
          Be16{nobody ? proto::kAggregatorRank : static_cast<std::uint16_t>(padding >> 4 & 3)};
      body.other_rank = Be16{static_cast<std::uint16_t>(padding >> 2 & 3)};
      body.reason = static_cast<proto::LeaveReason>(padding & 7);
      std::memcpy(datagram_.data() + sizeof(Header), &body, sizeof(body));
    }
    deliver(source(padding >= 0xC0 ? padding % kSources : rank), job, rank);
  }

  void hello() {
    const std::size_t size = input_.byte();
    write(datagram_, make_header(0, 0, Type::kHello), proto::HelloBody{.instance = Be64{size}},
          sizeof(Header) + size);
    if (witness_.has_key(1)) datagram_.resize(proto::datagram_size(kValues));
    deliver(source(size % kSources), 0, size % kSources);
  }

  void raw() {
    const auto bytes = std::as_bytes(input_.bytes(input_.byte() % 128));
    datagram_.assign(bytes.begin(), bytes.end());
    send(source(0));
  }

  /// The last datagram again, or one of the latest sealed ones, from anybody, perhaps changed.
  void replay() {
    const std::size_t from = input_.byte();
    if (!sealed_.empty()) {
      const std::size_t back = from / kSources % sealed_.size();
      datagram_ = sealed_[sealed_.size() - 1 - back];
    }
    send(source(from % kSources));
  }

  Header make_header(std::size_t job, std::size_t rank, Type type) {
    Header header = proto::make_header(type);
    header.job = Be32{static_cast<std::uint32_t>(job + 1)};
    header.epoch = Be32{witness_.epoch(header.job.value())};
    header.rank = Be16{static_cast<std::uint16_t>(rank)};
    return header;
  }

  /// As `rank` of the job sends it, or as somebody changes it.
  void deliver(const Peer& from, std::size_t job, std::size_t rank) {
    if (!witness_.has_key(static_cast<std::uint32_t>(job + 1))) return send(from);
    switch (input_.below(8)) {
      case 0:  // the member itself is out of order
        mutate(datagram_, input_);
        seal(job, rank);
        return witness_.receive(datagram_, from, now_);
      case 1: seal(job, rank); return send(from);
      case 2: seal(job, rank); return;  // held back, for replay()
      case 3: return send(from);        // not sealed
      case 4:
        witness_.holders().seal_wrongly(datagram_, static_cast<std::uint32_t>(job + 1));
        return witness_.receive(datagram_, from, now_);
      default: seal(job, rank); return witness_.receive(datagram_, from, now_);
    }
  }

  /// False where the job has a key and the rank has none of its session.
  bool seal(std::size_t job, std::size_t rank) {
    const auto number = static_cast<std::uint32_t>(job + 1);
    const auto who = static_cast<std::uint16_t>(rank);
    if (!witness_.has_key(number)) return true;
    if (!witness_.holders().seal(datagram_, number, who, source(rank).endpoint)) return false;
    sealed_.push_back(datagram_);
    if (sealed_.size() > kRemembered) sealed_.pop_front();
    return true;
  }

  void send(const Peer& from) {
    mutate(datagram_, input_);
    witness_.receive(datagram_, from, now_);
  }

  void pass(Time time) {
    now_ += time;
    witness_.tick(now_);
  }

  Input input_;
  ShardConfig config_;
  ShardWitness witness_;
  std::array<Job, 2> jobs_;
  Datagram datagram_;
  std::deque<Datagram> sealed_;  // latest
  Time now_ = 0;
};

}  // namespace
}  // namespace natagg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  natagg::fuzz::Program({data, size}).run();
  return 0;
}
