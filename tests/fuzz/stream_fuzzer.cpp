// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A worker's stream under a program of datagrams from aggregators, right or wrong, of submissions
// and of passing time. stream_witness.hpp says what must hold after each step.

#include <array>
#include <deque>
#include <utility>

#include "datagrams.hpp"
#include "stream_witness.hpp"

namespace natagg::fuzz {
namespace {

using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Endpoint;
using proto::Header;
using proto::Type;
using worker::StreamConfig;
using worker::Time;

constexpr Time kMs = 1'000'000;
constexpr Time kStart = 1'000'000 * kMs;
constexpr std::uint64_t kInstance = 99;
constexpr std::uint32_t kEpoch = 77;
constexpr std::size_t kRemembered = 40;

StreamConfig config_of(Input& input) {
  const std::size_t flags = input.byte();
  StreamConfig config;
  config.aggregators = {{0x0A00'0001, 4790}};
  if ((flags & 1) != 0) config.aggregators.push_back({0x0A00'0001, 4792});
  config.job = 7;
  config.world = static_cast<std::uint16_t>(1 + (flags >> 1 & 3));
  config.rank = static_cast<std::uint16_t>(config.world - 1);
  config.rounding = proto::Rounding::kNearest;
  config.instance = kInstance;
  config.values = (flags & 8) != 0 ? 128 : 0;
  config.mtu = (flags & 16) != 0 ? 576 : 400;
  config.window = static_cast<std::uint16_t>(1U << (flags >> 5 & 3));
  config.in_flight = (flags & 128) != 0 ? 3 : 64;
  config.connect_deadline = kStart + 1000 * kMs;
  if (config.world >= 3) config.straggler_deadline = 20 * kMs;
  if (!input.empty() && (input.rest()[0] & 8) != 0) {
    config.key = std::make_shared<const proto::JobKey>(job_key(config.job));
    config.entropy = entropy(0x5A);
  }
  return config;
}

class Program {
 public:
  explicit Program(std::span<const std::uint8_t> bytes)
      : input_(bytes), config_(config_of(input_)), witness_(config_, kStart) {}

  void run() {
    const std::size_t kind = input_.byte();
    first_ = (kind & 1) != 0 ? 0xFFFF'FFFE : 5;
    if ((kind & 2) != 0) connect(static_cast<std::uint16_t>(1 + (kind >> 2 & 1)));
    while (!input_.empty()) step();
    witness_.expect_end();
  }

 private:
  void step() {
    const std::size_t what = input_.byte();
    const std::size_t more = what >> 4;
    switch (what % 16) {
      case 0: return offer(more);
      case 1: return welcome(more);
      case 2: return control(Type::kRefuse, more, refusal(more));
      case 3: return control(Type::kAbort, more, abort_body(more));
      case 4: return pending();
      case 5:
      case 6:
      case 7: return result();
      case 8: return bare(static_cast<Type>(input_.below(16)), more);
      case 9: return raw(more);
      case 10: return again(more);
      case 11:
        return witness_.submit(input_.byte() * (1U + more), Time{1 + input_.byte()} * 8 * kMs);
      case 12: return witness_.pass(Time{100'000} << more);
      case 13: return witness_.pass_to_next_event();
      case 14: return more == 0 ? witness_.transmit() : move(more);
      default: return more == 0 ? witness_.close() : bare(Type::kHeartbeat, more);
    }
  }

  /// To the state in which operations run, which bytes would find seldom.
  void connect(std::uint16_t shards) {
    witness_.transmit();
    for (const Endpoint& aggregator : config_.aggregators) {
      write(datagram_, make_header(Type::kOffer, 0), offer_body(shards),
            proto::datagram_size(witness_.values_asked()));
      answer(aggregator);
    }
    witness_.transmit();
    std::uint16_t place = 0;
    for (const Endpoint& aggregator : config_.aggregators) {
      for (std::uint16_t i = 0; i < shards; ++i) {
        proto::WelcomeBody body = welcome_body(0);
        body.shard = Be16{place++};
        write(datagram_, make_header(Type::kWelcome, kEpoch), body);
        answer(shard(aggregator, i));
      }
    }
  }

  static Endpoint shard(const Endpoint& aggregator, std::uint16_t i) {
    return {aggregator.address, static_cast<std::uint16_t>(aggregator.port + i)};
  }

  /// One of the four that may be shards, or nobody.
  [[nodiscard]] static Endpoint source(std::size_t i) {
    return {0x0A00'0001, static_cast<std::uint16_t>(4790 + i % 5)};
  }

  void answer(const Endpoint& from) {
    seal(from);
    witness_.receive(datagram_, from);
  }

  static Header make_header(Type type, std::uint32_t epoch) {
    Header header = proto::make_header(type);
    header.job = Be32{7};
    header.epoch = Be32{epoch};
    header.rank = Be16{proto::kAggregatorRank};
    return header;
  }

  static proto::OfferBody offer_body(std::uint16_t shards) {
    return {.instance = Be64{kInstance},
            .shards = Be16{shards},
            .max_values = Be16{256},
            .max_window = Be16{8},
            .max_workers = Be16{16}};
  }

  [[nodiscard]] proto::WelcomeBody welcome_body(std::size_t more) const {
    const bool forming = (more & 1) != 0;
    const auto group = static_cast<std::uint32_t>(0xEF00'0000 + input_.rest().size());
    return {.instance = Be64{(more & 2) != 0 ? 0 : kInstance},
            .members = Be64{1234},
            .first_sequence = Be32{first_},
            .multicast_address = Be32{(more & 4) != 0 ? group : 0U},
            .multicast_port = Be16{},
            .values = Be16{128},
            .window = Be16{static_cast<std::uint16_t>((more & 8) != 0 ? 8 : 1)},
            .joined = Be16{1},
            .missing = Be16{static_cast<std::uint16_t>(more)},
            .shard = Be16{},
            .moves = Be16{},
            .state = forming ? proto::SessionState::kForming : proto::SessionState::kReady,
            .reserved = 0};
  }

  void offer(std::size_t more) {
    proto::OfferBody body = offer_body(static_cast<std::uint16_t>(1 + more % 2));
    if (more >= 8) {
      body.shards = Be16{static_cast<std::uint16_t>(input_.take(2))};
      body.max_values = Be16{static_cast<std::uint16_t>(input_.byte() * (more & 1 ? 16U : 1U))};
      body.max_window = Be16{static_cast<std::uint16_t>(input_.byte())};
    }
    write(datagram_, make_header(Type::kOffer, 0), body,
          proto::datagram_size(witness_.values_asked()));
    deliver(source(more >> 1 & 2));
  }

  void welcome(std::size_t more) {
    const std::size_t which = input_.byte();
    proto::WelcomeBody body = welcome_body(more);
    body.shard = Be16{static_cast<std::uint16_t>(which >> 3 & 3)};
    body.moves = Be16{static_cast<std::uint16_t>(which >> 5 & 1)};
    // Another epoch where a shard is joined again.
    const auto epoch = static_cast<std::uint32_t>(kEpoch + (which >> 6));
    write(datagram_, make_header(Type::kWelcome, epoch), body);
    deliver(source(which & 7));
  }

  void move(std::size_t more) {
    const std::size_t which = input_.byte();
    const proto::MoveBody body{.members = Be64{(which & 0x80) != 0 ? 4321U : 1234U},
                               .shard = Be16{static_cast<std::uint16_t>(which >> 3 & 7)},
                               .moves = Be16{static_cast<std::uint16_t>(which & 7)}};
    control(Type::kMove, more, body);
  }

  static proto::RefuseBody refusal(std::size_t more) {
    return {.instance = Be64{kInstance},
            .yours = Be64{1},
            .ours = Be64{2},
            .reason = static_cast<proto::RefuseReason>(more),
            .reserved = 0,
            .shard = Be16{static_cast<std::uint16_t>(more & 1)}};
  }

  static proto::AbortBody abort_body(std::size_t more) {
    proto::AbortBody body{};
    body.reason = static_cast<proto::AbortReason>(more % 8);
    return body;
  }

  template <typename Body>
  void control(Type type, std::size_t more, const Body& body) {
    write(datagram_, make_header(type, kEpoch), body);
    deliver(source(more));
  }

  void bare(Type type, std::size_t more) {
    write(datagram_, make_header(type, kEpoch), sizeof(Header) + 40);
    deliver(source(more));
  }

  void pending() {
    const std::size_t which = input_.byte();
    const SentData* data = witness_.sent_data(which);
    if (data == nullptr) return;
    Header header = make_header(Type::kPending, kEpoch);
    header.sequence = data->header.sequence;
    const proto::PendingBody body{.missing = Be16{0},
                                  .missing_count = Be16{static_cast<std::uint16_t>(which % 3)}};
    write(datagram_, header, body);
    deliver(data->to);
  }

  /// The result of a chunk that was sent, most often of a late one.
  void result() {
    const std::size_t which = input_.byte();
    const SentData* data = witness_.sent_data(which);
    if (data == nullptr) return;
    Header header = data->header;
    header.type = Type::kResult;
    header.rank = Be16{proto::kAggregatorRank};
    write(datagram_, header, sizeof(Header) + header.count.value());
    constexpr std::array<std::uint8_t, 4> kBytes = {0x40, 0x3C, 0x42, 0x05};
    std::memset(datagram_.data() + sizeof(Header), kBytes[which & 3], header.count.value());
    if (config_.straggler_deadline != 0 && (which & 0x40) != 0) {
      header.type = Type::kPartial;
      std::memcpy(datagram_.data(), &header, sizeof(header));
      datagram_.push_back(static_cast<std::byte>(which >> 2 & 7));
    }
    deliver(data->to);
  }

  void raw(std::size_t more) {
    const auto bytes = std::as_bytes(input_.bytes(input_.byte() % 128));
    datagram_.assign(bytes.begin(), bytes.end());
    send(source(more));
  }

  /// The last datagram, or one of the latest sealed ones.
  void again(std::size_t more) {
    if (sealed_.empty()) return send(source(more));
    const auto& [datagram, by] = sealed_[sealed_.size() - 1 - input_.byte() % sealed_.size()];
    datagram_ = datagram;
    send(more < 10 ? by : source(more));
  }

  /// As the shard sends it, or as somebody changes it.
  void deliver(const Endpoint& from) {
    if (witness_.shards() == nullptr) return send(from);
    switch (input_.below(8)) {
      case 0:  // the shard itself is out of order
        mutate(datagram_, input_);
        return answer(from);
      case 1: seal(from); return send(from);
      case 2: return seal(from);  // held back, for again()
      case 3: return send(from);  // not sealed
      default: return answer(from);
    }
  }

  void seal(const Endpoint& from) {
    if (witness_.shards() == nullptr || !witness_.shards()->seal(datagram_, from)) return;
    sealed_.emplace_back(datagram_, from);
    if (sealed_.size() > kRemembered) sealed_.pop_front();
  }

  void send(const Endpoint& from) {
    mutate(datagram_, input_);
    witness_.receive(datagram_, from);
  }

  Input input_;
  StreamConfig config_;
  StreamWitness witness_;
  std::uint32_t first_ = 0;
  Datagram datagram_;
  std::deque<std::pair<Datagram, Endpoint>> sealed_;  // latest, and whose
};

}  // namespace
}  // namespace natagg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  natagg::fuzz::Program({data, size}).run();
  return 0;
}
