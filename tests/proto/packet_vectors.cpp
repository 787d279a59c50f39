// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// packets.csv: one datagram of every type, and some variants, with every byte of every field
// distinct where its meaning allows.

#include <cstring>
#include <initializer_list>
#include <vector>

#include "proto/nat8.hpp"
#include "proto/operation.hpp"
#include "proto/packet.hpp"
#include "vectors.hpp"

namespace natagg::vectors {
namespace {

using namespace proto;

struct Packet {
  std::string name;
  Header header;
  std::vector<std::uint8_t> rest;  // body or payload
  std::string fields;              // of the body: name=value;...
};

std::string hex(const void* data, std::size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint8_t byte = static_cast<const std::uint8_t*>(data)[i];
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

struct Field {
  const char* name;
  std::uint64_t value;
};

template <typename Body>
Packet control(std::string name, Type type, const Body& body, std::initializer_list<Field> fields) {
  Packet packet{.name = std::move(name), .header = make_header(type), .rest = {}, .fields = {}};
  packet.rest.resize(sizeof(Body));
  std::memcpy(packet.rest.data(), &body, sizeof(Body));
  for (const Field& field : fields) {
    if (!packet.fields.empty()) packet.fields += ';';
    packet.fields += std::string(field.name) + '=' + std::to_string(field.value);
  }
  return packet;
}

Packet values(std::string name, Type type, std::vector<std::uint8_t> bytes) {
  Packet packet{.name = std::move(name), .header = make_header(type), .rest = {}, .fields = {}};
  packet.header.count = Be16{static_cast<std::uint16_t>(bytes.size())};
  packet.rest = std::move(bytes);
  return packet;
}

std::vector<Packet> all_packets() {
  std::vector<Packet> packets;
  const Be64 instance{0xA1A2'A3A4'A5A6'A7A8};
  const std::uint64_t id = instance.value();

  packets.push_back(control("hello", Type::kHello, HelloBody{instance}, {{"instance", id}}));

  const OfferBody offer{instance, Be16{4}, Be16{8832}, Be16{256}, Be16{1024}};
  packets.push_back(control("offer", Type::kOffer, offer,
                            {{"instance", id},
                             {"shards", offer.shards.value()},
                             {"max_values", offer.max_values.value()},
                             {"max_window", offer.max_window.value()},
                             {"max_workers", offer.max_workers.value()}}));

  const JoinBody join{.instance = instance,
                      .seed = Be64{0xB1B2'B3B4'B5B6'B7B8},
                      .members = Be64{0xD1D2'D3D4'D5D6'D7D8},
                      .world = Be16{8},
                      .values = Be16{1408},
                      .window = Be16{128},
                      .shard = Be16{3},
                      .shards = Be16{5},
                      .rounding = 0,
                      .flags = kJoinValuesPinned,
                      .resume = Be32{0xFFFF'FF71},
                      .held = Be32{5},
                      .moves = Be16{2},
                      .stragglers = Be16{250},
                      .quorum = Be16{6},
                      .reserved = {}};
  packets.push_back(control("join", Type::kJoin, join,
                            {{"instance", id},
                             {"seed", join.seed.value()},
                             {"members", join.members.value()},
                             {"world", join.world.value()},
                             {"values", join.values.value()},
                             {"window", join.window.value()},
                             {"shard", join.shard.value()},
                             {"shards", join.shards.value()},
                             {"rounding", join.rounding},
                             {"flags", join.flags},
                             {"resume", join.resume.value()},
                             {"held", join.held.value()},
                             {"moves", join.moves.value()},
                             {"stragglers", join.stragglers.value()},
                             {"quorum", join.quorum.value()},
                             {"reserved", 0}}));

  const WelcomeBody welcome{.instance = instance,
                            .members = Be64{0xC1C2'C3C4'C5C6'C7C8},
                            .first_sequence = Be32{0xFFFF'FF00},
                            .multicast_address = Be32{0xEFC0'0102},
                            .multicast_port = Be16{4791},
                            .values = Be16{1408},
                            .window = Be16{128},
                            .joined = Be16{8},
                            .missing = Be16{kAggregatorRank},
                            .shard = Be16{3},
                            .moves = Be16{2},
                            .state = SessionState::kReady,
                            .reserved = 0};
  packets.push_back(control("welcome", Type::kWelcome, welcome,
                            {{"instance", id},
                             {"members", welcome.members.value()},
                             {"first_sequence", welcome.first_sequence.value()},
                             {"multicast_address", welcome.multicast_address.value()},
                             {"multicast_port", welcome.multicast_port.value()},
                             {"values", welcome.values.value()},
                             {"window", welcome.window.value()},
                             {"joined", welcome.joined.value()},
                             {"missing", welcome.missing.value()},
                             {"shard", welcome.shard.value()},
                             {"moves", welcome.moves.value()},
                             {"state", static_cast<std::uint64_t>(welcome.state)},
                             {"reserved", 0}}));

  const RefuseBody refuse{instance, Be64{9}, Be64{8}, RefuseReason::kWorld, 0, Be16{3}};
  packets.push_back(control("refuse", Type::kRefuse, refuse,
                            {{"instance", id},
                             {"yours", refuse.yours.value()},
                             {"ours", refuse.ours.value()},
                             {"reason", static_cast<std::uint64_t>(refuse.reason)},
                             {"reserved", 0},
                             {"shard", refuse.shard.value()}}));

  const LeaveBody leave{Be64{fingerprint({.length = 102})},
                        Be64{fingerprint({.length = 103, .reduction = Reduction::kAverage})},
                        Be32{8},
                        Be32{9},
                        Be16{5},
                        Be16{4},
                        LeaveReason::kMismatch,
                        {}};
  packets.push_back(control("leave", Type::kLeave, leave,
                            {{"fingerprint", leave.fingerprint.value()},
                             {"other_fingerprint", leave.other_fingerprint.value()},
                             {"operation", leave.operation.value()},
                             {"other_operation", leave.other_operation.value()},
                             {"rank", leave.rank.value()},
                             {"other_rank", leave.other_rank.value()},
                             {"reason", static_cast<std::uint64_t>(leave.reason)}}));

  for (const auto& [name, type] :
       {std::pair{"heartbeat", Type::kHeartbeat}, std::pair{"probe", Type::kProbe}}) {
    Packet packet{.name = name, .header = make_header(type), .rest = {}, .fields = {}};
    packets.push_back(packet);
  }

  const PendingBody pending{Be16{2}, Be16{3}};
  packets.push_back(control(
      "pending", Type::kPending, pending,
      {{"missing", pending.missing.value()}, {"missing_count", pending.missing_count.value()}}));

  packets.push_back(control("nack", Type::kNack, NackBody{Be64{0x8000'0000'0000'0005}},
                            {{"lacking", 0x8000'0000'0000'0005}}));

  const AbortBody abort{Be64{fingerprint({.length = 100})},
                        Be64{fingerprint({.length = 101, .reduction = Reduction::kAverage})},
                        Be32{6},
                        Be32{7},
                        Be16{1},
                        Be16{2},
                        AbortReason::kMismatch,
                        LeaveReason::kTimedOut,
                        {}};
  packets.push_back(control("abort", Type::kAbort, abort,
                            {{"fingerprint", abort.fingerprint.value()},
                             {"other_fingerprint", abort.other_fingerprint.value()},
                             {"operation", abort.operation.value()},
                             {"other_operation", abort.other_operation.value()},
                             {"rank", abort.rank.value()},
                             {"other_rank", abort.other_rank.value()},
                             {"reason", static_cast<std::uint64_t>(abort.reason)},
                             {"cause", static_cast<std::uint64_t>(abort.cause)}}));

  packets.push_back(
      control("challenge", Type::kChallenge, ChallengeBody{instance}, {{"instance", id}}));
  const MoveBody move{Be64{0xC1C2'C3C4'C5C6'C7C8}, Be16{3}, Be16{2}};
  packets.push_back(control("move", Type::kMove, move,
                            {{"members", move.members.value()},
                             {"shard", move.shard.value()},
                             {"moves", move.moves.value()}}));

  packets.push_back(values("data", Type::kData, {0, 60, 0x80, 60 | 0x80, nat8::kZero, 17}));
  packets.push_back(values("data-specials", Type::kData,
                           {nat8::kPositiveInf, nat8::kNegativeInf, nat8::kNan, nat8::kZero}));
  packets.back().header.flags = kFlagSpecials | kFlagNearest;
  packets.push_back(values("data-one-value", Type::kData, {50}));
  packets.push_back(values("result", Type::kResult, {59, 0x80 | 12}));
  packets.push_back(values("result-multicast", Type::kResult, {1, 2, 3}));
  packets.back().header.flags = kFlagMulticast;
  packets.push_back(values("partial", Type::kPartial, {58, 0x80 | 3, nat8::kZero}));
  packets.back().rest.insert(packets.back().rest.end(), {0b1111'1011, 0b1});  // ranks

  for (Packet& packet : packets) {
    Header& header = packet.header;
    header.job = Be32{0x1112'1314};
    header.epoch = Be32{0x2122'2324};
    header.rank = Be16{0x3132};
    header.slot = Be16{0x4142};
    header.sequence = Be32{0xFFFF'FF42};
    header.operation = Be32{0x5152'5354};
    header.element = Be64{0x0001'0203'0405'0607};
    header.fingerprint = Be64{fingerprint({.length = 0x0010'2030'4050'6070,
                                           .type = DataType::kFloat32,
                                           .reduction = Reduction::kAverage})};
    header.shift = -37;
  }
  return packets;
}

}  // namespace

std::string packets() {
  std::string text =
      "name,datagram,magic,version,type,job,epoch,rank,slot,sequence,operation,element,"
      "fingerprint,count,shift,flags,body\n";
  for (const Packet& packet : all_packets()) {
    const Header& header = packet.header;
    text += packet.name + ',' + hex(&header, sizeof(header)) +
            hex(packet.rest.data(), packet.rest.size());
    for (const std::uint64_t value :
         {std::uint64_t{header.magic.value()}, std::uint64_t{header.version},
          static_cast<std::uint64_t>(header.type), std::uint64_t{header.job.value()},
          std::uint64_t{header.epoch.value()}, std::uint64_t{header.rank.value()},
          std::uint64_t{header.slot.value()}, std::uint64_t{header.sequence.value()},
          std::uint64_t{header.operation.value()}, header.element.value(),
          header.fingerprint.value(), std::uint64_t{header.count.value()}}) {
      text += ',' + std::to_string(value);
    }
    text += ',' + std::to_string(header.shift) + ',' + std::to_string(header.flags) + ',' +
            packet.fields + '\n';
  }
  return text;
}

}  // namespace natagg::vectors
