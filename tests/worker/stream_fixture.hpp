// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A stream, and the test in the place of its aggregators.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "support/packets.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::test {

using proto::Be16;
using proto::Be32;
using proto::Be64;
using proto::Endpoint;
using proto::Header;
using proto::Type;
using worker::Completion;
using worker::Stream;
using worker::StreamConfig;
using worker::Submission;
using worker::Time;

inline constexpr Time kMs = 1'000'000;
inline constexpr Time kStart = 1'000'000 * kMs;
inline constexpr std::uint32_t kEpoch = 77;
inline constexpr std::uint16_t kValues = 128;
inline constexpr std::uint32_t kFirst = 0xFFFF'FFFD;  // three chunks before the wrap
inline const Endpoint kAggregator{0x0A00'0001, 4790};

struct Sent {
  Endpoint to;
  Packet packet;
  Header header;
};

class StreamFixture : public ::testing::Test {
 protected:
  static StreamConfig config() {
    StreamConfig config;
    config.aggregators = {kAggregator};
    config.job = 7;
    config.rank = 1;
    config.world = 3;
    config.seed = 5;
    config.rounding = proto::Rounding::kNearest;
    config.instance = 99;
    config.values = kValues;
    config.window = 8;
    config.connect_deadline = kStart + 1000 * kMs;
    return config;
  }

  void start(const StreamConfig& with) { stream.emplace(with, now); }

  /// All that the stream sends now.
  std::vector<Sent> transmit() {
    std::vector<Sent> all;
    std::array<worker::Outgoing, 4> burst;
    while (const std::size_t n = stream->transmit(now, burst)) {
      for (std::size_t i = 0; i < n; ++i) {
        Packet packet(burst[i].datagram.begin(), burst[i].datagram.end());
        EXPECT_EQ(proto::validate(packet), proto::Reject::kNone);
        all.push_back({burst[i].to, packet, proto::read_header(packet)});
      }
    }
    return all;
  }

  std::vector<Sent> transmit(Type type) {
    std::vector<Sent> all = transmit();
    std::erase_if(all, [type](const Sent& s) { return s.header.type != type; });
    return all;
  }

  static Header header(Type type, std::uint32_t epoch = kEpoch) {
    Header h = proto::make_header(type);
    h.job = Be32{7};
    h.epoch = Be32{epoch};
    return h;
  }

  void offer(std::uint16_t shards, std::uint16_t values, const Endpoint& from = kAggregator,
             std::uint16_t max_values = proto::kMaxValues) {
    const proto::OfferBody body{.instance = Be64{99},
                                .shards = Be16{shards},
                                .max_values = Be16{max_values},
                                .max_window = Be16{256},
                                .max_workers = Be16{1024}};
    stream->receive(control_packet(header(Type::kOffer, 0), body, proto::datagram_size(values)),
                    from, now);
  }

  static proto::WelcomeBody welcome_body(proto::SessionState state) {
    return {.instance = Be64{99},
            .members = Be64{1234},
            .first_sequence = Be32{kFirst},
            .multicast_address = Be32{},
            .multicast_port = Be16{},
            .values = Be16{kValues},
            .window = Be16{8},
            .joined = Be16{2},
            .missing = Be16{2},
            .shard = Be16{},
            .moves = Be16{},
            .state = state,
            .reserved = 0};
  }

  void welcome(const proto::WelcomeBody& body, const Endpoint& from = kAggregator) {
    stream->receive(control_packet(header(Type::kWelcome), body), from, now);
  }

  /// Connects to one aggregator with so many shards.
  void connect(std::uint16_t shards = 1) {
    if (!stream) start(config());
    transmit();
    offer(shards, kValues);
    transmit();
    for (std::uint16_t i = 0; i < shards; ++i) {
      proto::WelcomeBody body = welcome_body(proto::SessionState::kReady);
      body.shard = Be16{i};
      welcome(body, shard(i));
    }
    ASSERT_EQ(stream->state(), Stream::State::kReady);
  }

  static Endpoint shard(std::uint16_t i) {
    return {kAggregator.address, static_cast<std::uint16_t>(kAggregator.port + i)};
  }

  /// Submits the sum of `length` values, in[i] = i, deadline after `timeout`.
  std::uint64_t submit(std::size_t length, Time timeout = 10'000 * kMs,
                       proto::Reduction reduction = proto::Reduction::kSum) {
    in.resize(length);
    for (std::size_t i = 0; i < length; ++i) in[i] = static_cast<float>(i);
    out.assign(length, -1);
    return stream->submit({.operation = {.length = length, .reduction = reduction},
                           .in = in.data(),
                           .out = out.data(),
                           .deadline = now + timeout});
  }

  /// The RESULT for a DATA packet: the same bytes, as if the other ranks had sent zeros.
  static Packet result_of(const Sent& data) {
    Packet packet = data.packet;
    Header h = data.header;
    h.type = Type::kResult;
    h.rank = Be16{proto::kAggregatorRank};
    std::memcpy(packet.data(), &h, sizeof(h));
    return packet;
  }

  void give_result(const Sent& data) { stream->receive(result_of(data), data.to, now); }

  void give_pending(const Sent& data, std::uint16_t missing, std::uint16_t missing_count = 1) {
    Header h = header(Type::kPending);
    h.sequence = data.header.sequence;
    h.slot = data.header.slot;
    const proto::PendingBody body{.missing = Be16{missing}, .missing_count = Be16{missing_count}};
    stream->receive(control_packet(h, body), data.to, now);
  }

  /// Lacks the chunk, and those after it that a bit of `lacking` stands for.
  void give_nack(const Sent& first, std::uint64_t lacking) {
    Header h = header(Type::kNack);
    h.sequence = first.header.sequence;
    stream->receive(control_packet(h, proto::NackBody{.lacking = proto::Be64{lacking}}), first.to,
                    now);
  }

  void give_abort(const proto::AbortBody& body, std::uint32_t epoch = kEpoch) {
    stream->receive(control_packet(header(Type::kAbort, epoch), body), kAggregator, now);
  }

  std::optional<Stream> stream;
  Time now = kStart;
  std::vector<float> in;
  std::vector<float> out;
};

}  // namespace natagg::test
