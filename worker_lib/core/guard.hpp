// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Stands between a stream whose job has a key and the network: seals what goes out, and lets
// nothing in that the key does not vouch for as an answer to this worker, in this session.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/authentication.hpp"
#include "proto/endpoint.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::worker {

class Guard {
 public:
  enum class Verdict : std::uint8_t {
    kAdmitted,
    kRejected,
    kHint,  // a REFUSE for the key: says what may be wrong, and anybody can have sent it
  };

  /// `config`, which has a key, outlives this.
  explicit Guard(const StreamConfig& config);

  /// Judges a valid packet of this job from `source`.
  [[nodiscard]] Verdict judge(const proto::Header& header, std::span<const std::byte> datagram,
                              const proto::Endpoint& source);

  /// Copies datagrams and puts proof and trailer to them; they stay valid until the next call.
  /// Those that no session's keys fit are left out. Returns how many there are then.
  [[nodiscard]] std::size_t seal(std::span<Outgoing> out);

  /// From now on `shard` is joined anew as this place of the pool: what answered an earlier joining
  /// is no answer any more. The latest sessions keep their keys.
  void renew(const proto::Endpoint& shard, std::uint16_t place);

 private:
  /// Of the packets sent latest: who repeats one has read it lately.
  class RecentMacs {
   public:
    void add(const proto::Mac& mac) { macs_[added_++ % macs_.size()] = mac; }
    [[nodiscard]] bool has(const proto::Mac& mac) const {
      const std::span sent = std::span(macs_).first(std::min(added_, macs_.size()));
      return std::find(sent.begin(), sent.end(), mac) != sent.end();
    }

   private:
    std::array<proto::Mac, 256> macs_{};
    std::size_t added_ = 0;
  };

  struct Session {
    std::uint32_t epoch;
    proto::Nonce worker;
    proto::Nonce nonce;  // the session's
    proto::Sealer sealer;
    proto::Opener opener;
    RecentMacs recent{};
  };

  /// A shard in one of its places in the pool, or an aggregator that is being asked for its shards.
  struct Party {
    proto::Endpoint endpoint;
    std::uint16_t place;
    proto::Nonce nonce;             // ours, fresh for each joining
    proto::Nonce challenge{};       // theirs, the latest
    proto::ReplayWindow answers{};  // to which HELLO or JOIN, by its counter
  };

  struct Joined {
    proto::Endpoint endpoint;
    std::unique_ptr<Session> session;
  };

  Party& find_party(const proto::Endpoint& endpoint, std::uint16_t place);
  [[nodiscard]] Session* find_session(const proto::Endpoint& endpoint, std::uint32_t epoch);
  [[nodiscard]] proto::Nonce make_nonce();
  [[nodiscard]] bool judge_handshake(const proto::Header& header,
                                     std::span<const std::byte> datagram,
                                     const proto::Endpoint& source);
  [[nodiscard]] bool judge_unknown(std::span<const std::byte> datagram, const Session& session);
  void adopt(const proto::Endpoint& endpoint, std::uint32_t epoch, const proto::Nonce& worker,
             const proto::Nonce& nonce);
  [[nodiscard]] std::size_t seal(const Outgoing& datagram, std::span<std::byte> copy);

  const StreamConfig& config_;
  const proto::JobKey& key_;
  proto::Hmac hmac_;
  std::uint64_t nonces_ = 0;
  std::uint32_t handshakes_ = 0;  // counts the HELLOs and JOINs sent
  std::vector<Party> parties_;
  std::vector<Joined> sessions_;
  std::size_t latest_ = 0;         // of sessions_, that was used
  std::size_t room_;               // bytes of the largest datagram
  std::vector<std::byte> copies_;  // of one batch
};

}  // namespace natagg::worker
