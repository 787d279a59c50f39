// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A shard, and what must hold whatever is sent to it:
// - every packet is counted once, and every DATA has one outcome;
// - a stranger gets at most one datagram, to himself, hardly longer than his own, and changes
// nothing
//   of a session; nobody's packet makes the shard send more than its members are;
// - what is sent is well formed;
// - a result comes only after every rank has contributed once, and is the same bytes each time;
// - jobs, sessions and slots stay within the configuration, and go away with their members;
// - in a job that has a key, only what a member has sealed is taken, bit by bit, and only once: all
//   else changes nothing, as if a stranger had sent it.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "aggregator/core/shard.hpp"
#include "fenced.hpp"
#include "key_holders.hpp"
#include "proto/packet.hpp"

namespace natagg::fuzz {

/// Where a rank sends from, and which rank that is.
[[nodiscard]] proto::Endpoint endpoint_of(std::uint16_t rank);
[[nodiscard]] std::uint16_t rank_of(const proto::Endpoint& endpoint);

class ShardWitness {
 public:
  explicit ShardWitness(const aggregator::ShardConfig& config);

  void receive(std::span<const std::byte> datagram, const aggregator::Peer& source,
               aggregator::Time now);
  void tick(aggregator::Time now);

  /// Lets time pass without packets: nothing of any job may be left.
  void expect_all_forgotten(aggregator::Time now);

  /// The job's epoch that was announced last, 0 for none.
  [[nodiscard]] std::uint32_t epoch(std::uint32_t job) const;

  [[nodiscard]] bool has_key(std::uint32_t job) const;

  /// The workers that have the key.
  [[nodiscard]] KeyHolders& holders() { return holders_; }

  [[nodiscard]] const aggregator::Counters& counters() const { return shard_.counters(); }

  /// The digest of the ranks of the latest session of `job` that was ready, 1 before.
  [[nodiscard]] std::uint64_t members(std::uint32_t job) const;

 private:
  using ChunkName =
      std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // job, epoch, sequence

  struct ChunkHistory {
    std::set<std::uint16_t> contributed;
    std::vector<std::uint8_t> result;
  };

  void look_at(const aggregator::Outgoing& outgoing);
  void look_at_seal(const proto::Header& header, std::span<const std::byte> packet,
                    std::span<const aggregator::Peer> to);
  void look_at_result(const proto::Header& header, std::span<const std::uint8_t> bytes);
  void look_at_partial(const proto::Header& header, std::span<const std::byte> packet);
  void check_counted(proto::Type type, bool well_formed);
  [[nodiscard]] bool vouched_for(const proto::Header& header, std::span<const std::byte> datagram,
                                 const aggregator::Peer& source,
                                 std::span<const aggregator::Outgoing> sent, aggregator::Time now);
  static void take_join(Sealed& sealed, std::span<const aggregator::Outgoing> sent,
                        aggregator::Time now);
  void check_stranger(std::span<const aggregator::Outgoing> sent, const aggregator::Peer& source,
                      std::size_t size) const;
  void check_bounds(std::span<const aggregator::Outgoing> sent) const;

  aggregator::ShardConfig config_;
  aggregator::Shard shard_;
  Fenced memory_;
  KeyHolders holders_;
  aggregator::Counters before_;
  aggregator::Shard::Usage usage_before_{};
  std::map<std::uint32_t, std::uint32_t> epochs_;
  std::map<std::uint32_t, std::uint64_t> members_;                           // of job
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t> worlds_;  // of job and epoch
  std::map<ChunkName, ChunkHistory> chunks_;
  std::set<std::pair<std::uint32_t, proto::Endpoint>> joined_;  // jobs whose JOIN was accepted
};

}  // namespace natagg::fuzz
