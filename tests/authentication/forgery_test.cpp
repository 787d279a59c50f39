// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Millions of packets that an attacker without the key can make, against a shard and a stream that
// are in the middle of an operation: none is accepted. The attacker has seen everything that was
// sent, in this run and an earlier one, also of a job whose key it has.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "authentication/rig.hpp"

namespace natagg::test {
namespace {

using proto::Type;

constexpr std::size_t kAttacks = 1'000'000;  // against each of the two

class Attacker {
 public:
  /// Sets the scene: an earlier run of the job, a run of another job, and a chunk that is open.
  Attacker() {
    rig_.connect(1);
    reduce();
    rig_.close();
    rig_.run_for(3'000 * kMs);
    earlier_to_shard_ = std::exchange(rig_.to_shard, {});
    earlier_to_worker_ = std::exchange(rig_.to_worker, {});
    rig_.connect(2, kJob + 1);
    reduce();
    rig_.close();
    rig_.run_for(3'000 * kMs);
    for (auto& recorded : rig_.to_shard) earlier_to_shard_.push_back(std::move(recorded));
    for (auto& recorded : rig_.to_worker) earlier_to_worker_.push_back(std::move(recorded));
    rig_.to_shard.clear();
    rig_.to_worker.clear();

    rig_.connect(3);
    reduce();
    rig_.mute[1] = true;  // so that forged contributions of rank 1 would be added
    for (std::size_t rank = 0; rank < kRanks; ++rank) rig_.submit(rank, 500);
    rig_.pump();
    rig_.pump();
  }

  Rig& rig() { return rig_; }

  /// A packet for the shard (or for rank 0), from what was sent to it, or by it.
  Packet attack(bool on_shard) {
    const bool reflected = draw(8) == 0;
    const bool earlier = draw(4) == 0;
    const bool to_shard = on_shard != reflected;
    const auto& source = earlier ? (to_shard ? earlier_to_shard_ : earlier_to_worker_)
                                 : (to_shard ? rig_.to_shard : rig_.to_worker);
    Packet packet = source[draw(source.size())].packet;
    const Type type = proto::read_header(packet).type;
    // A HELLO asks, changes nothing and may be asked again; so it is altered in any case.
    const std::uint64_t kind = draw(9);
    switch (kind) {
      case 0: flip(packet, 0, sizeof(proto::Header)); break;
      case 1: flip(packet, 0, packet.size()); break;
      case 2: flip(packet, packet.size() - sizeof(proto::Trailer), sizeof(proto::Mac)); break;
      case 3: flip(packet, packet.size() - sizeof(proto::Be32), sizeof(proto::Be32)); break;
      case 4: forge(packet); break;
      case 5: downgrade(packet); break;
      case 6: transplant(packet); break;
      case 7: resize(packet); break;
      default:
        if (type == Type::kHello) flip(packet, 0, packet.size());
        break;  // replayed as it is
    }
    ++made_[kind];
    return packet;
  }

  std::uint64_t draw(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] const std::array<std::uint64_t, 9>& made() const { return made_; }

 private:
  void reduce() {
    for (std::size_t rank = 0; rank < kRanks; ++rank) rig_.submit(rank, 1'500);
    rig_.run_for(150 * kMs);
    for (auto& stream : rig_.streams) {
      ASSERT_EQ(stream->poll_completion().value_or(worker::Completion{}).status, NATAGG_OK);
    }
  }

  void flip(Packet& packet, std::size_t first, std::size_t size) {
    const std::uint64_t bit = draw(size * 8);
    packet[first + bit / 8] ^= std::byte{1} << bit % 8;
  }

  /// Another rank, chunk or payload, the next counter, and any MAC.
  void forge(Packet& packet) {
    proto::Header header = proto::read_header(packet);
    if (draw(2) == 0) header.rank = proto::Be16{static_cast<std::uint16_t>(draw(3))};
    if (draw(2) == 0) {
      header.sequence = proto::Be32{header.sequence.value() + static_cast<std::uint32_t>(draw(9))};
      header.slot = proto::Be16{static_cast<std::uint16_t>(header.sequence.value() % 4)};
    }
    std::memcpy(packet.data(), &header, sizeof(header));
    proto::Trailer trailer = proto::read_trailer(packet);
    for (std::uint8_t& byte : trailer.mac) byte = static_cast<std::uint8_t>(random_());
    if (draw(4) == 0) trailer.mac = {};
    trailer.counter =
        proto::Be32{trailer.counter.value() + static_cast<std::uint32_t>(draw(2'000))};
    std::memcpy(packet.data() + packet.size() - sizeof(trailer), &trailer, sizeof(trailer));
  }

  void downgrade(Packet& packet) {
    proto::Header header = proto::read_header(packet);
    header.flags &= static_cast<std::uint8_t>(~proto::kFlagAuthenticated);
    std::memcpy(packet.data(), &header, sizeof(header));
    packet.resize(packet.size() - sizeof(proto::Trailer));
  }

  /// The trailer of another packet.
  void transplant(Packet& packet) {
    const Packet& other = rig_.to_shard[draw(rig_.to_shard.size())].packet;
    const proto::Trailer trailer = proto::read_trailer(other);
    const proto::Trailer own = proto::read_trailer(packet);
    if (trailer.mac == own.mac) return flip(packet, 0, packet.size());
    std::memcpy(packet.data() + packet.size() - sizeof(trailer), &trailer, sizeof(trailer));
  }

  void resize(Packet& packet) {
    std::size_t size = draw(2) == 0 ? draw(packet.size()) : packet.size() + 1 + draw(40);
    packet.resize(size, static_cast<std::byte>(draw(256)));
  }

  Rig rig_;
  std::vector<Rig::Recorded> earlier_to_shard_;
  std::vector<Rig::Recorded> earlier_to_worker_;
  std::mt19937_64 random_{1};
  std::array<std::uint64_t, 9> made_{};
};

/// Everything that a shard counts but what it drops, refuses and challenges.
std::vector<std::uint64_t> accepted_by(const aggregator::Shard& shard) {
  std::vector<std::uint64_t> counts;
  for (const Counter counter :
       {Counter::kContributions, Counter::kResults, Counter::kCachedResults,
        Counter::kPendingReplies, Counter::kDuplicateOpen, Counter::kJoins, Counter::kSessions,
        Counter::kLeaves, Counter::kAborts, Counter::kMismatch, Counter::kStaleEpoch,
        Counter::kBadTerms, Counter::kBadSlot, Counter::kMalformedByte, Counter::kStaleSequence,
        Counter::kEarlySequence, Counter::kWrongSource, Counter::kBadRank}) {
    counts.push_back(shard.counters()[counter]);
  }
  return counts;
}

TEST(Forgery, NoneOfAMillionPacketsGetsIntoAShard) {
  Attacker attacker;
  Rig& rig = attacker.rig();
  const std::vector<std::uint64_t> before = accepted_by(rig.shard);
  int unknown = 0;
  for (std::size_t i = 0; i < kAttacks; ++i) {
    const Packet packet = attacker.attack(true);
    const aggregator::Peer from = Rig::peer_of(attacker.draw(kRanks));
    for (const aggregator::Outgoing& answer : rig.shard.receive(packet, from, rig.now)) {
      const Packet sent = wire(answer);
      const proto::Header header = proto::read_header(sent);
      const Type type = header.type;
      if (proto::aborts_unknown(header, sent)) {  // to whom it may concern, once a millisecond
        ++unknown;
        continue;
      }
      ASSERT_TRUE(type == Type::kRefuse || type == Type::kChallenge)
          << i << ": " << proto::to_string(header);
      ASSERT_LE(sent.size(), packet.size());
    }
    if (i % 10'000 == 0) {
      ASSERT_EQ(accepted_by(rig.shard), before) << i;
    }
  }
  EXPECT_EQ(accepted_by(rig.shard), before);
  EXPECT_EQ(unknown, 1) << "all attacks take place in one";
  EXPECT_GT(rig.count(Counter::kBadMac), 10'000U);
  EXPECT_GT(rig.count(Counter::kReplayed), 10'000U);
  EXPECT_GT(rig.count(Counter::kWrongKey), 1'000U);
  EXPECT_GT(rig.count(Counter::kUnauthenticated), 10'000U);
  for (const std::uint64_t made : attacker.made()) EXPECT_GT(made, 10'000U);

  // And the job goes on as if nothing had happened.
  rig.mute[1] = false;
  rig.run_for(700 * kMs);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(rig.streams[rank]->poll_completion().value().status, NATAGG_OK);
    EXPECT_EQ(rig.buffers[rank], std::vector<float>(500, 2.0F));
  }
}

TEST(Forgery, NoneOfAMillionPacketsGetsIntoAStream) {
  Attacker attacker;
  Rig& rig = attacker.rig();
  Stream& stream = *rig.streams[0];
  const worker::StreamStats before = stream.stats();
  for (std::size_t i = 0; i < kAttacks; ++i) {
    const Packet packet = attacker.attack(false);
    stream.receive(packet, kShard, rig.now);
    ASSERT_EQ(stream.stats().rejected_packets, before.rejected_packets + i + 1)
        << (packet.size() < sizeof(proto::Header) ? "short"
                                                  : proto::to_string(proto::read_header(packet)));
  }
  EXPECT_EQ(stream.state(), Stream::State::kReady);
  EXPECT_EQ(stream.stats().result_packets, before.result_packets);
  EXPECT_EQ(stream.stats().duplicate_results, before.duplicate_results);
  rig.mute[1] = false;
  rig.run_for(700 * kMs);
  ASSERT_EQ(stream.poll_completion().value().status, NATAGG_OK);
  EXPECT_EQ(rig.buffers[0], std::vector<float>(500, 2.0F));
}

}  // namespace
}  // namespace natagg::test
