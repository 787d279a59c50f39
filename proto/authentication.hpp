// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Keys and message authentication codes, the one place that knows the cryptographic library
// (OpenSSL's libcrypto). specification.md, section 7, has the protocol and why it holds,
// docs/security.md what it stops. Where the library refuses, for want of memory, functions throw
// std::runtime_error. What runs for each packet of a session allocates nothing and has no cause to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "proto/packet.hpp"
#include "proto/replay_window.hpp"

namespace natagg::proto {

/// A derived key, or entropy to derive from.
using Secret = std::array<std::uint8_t, 32>;

inline constexpr std::size_t kMinKeyBytes = 32;
inline constexpr std::size_t kMaxKeyBytes = 4096;

/// A datagram in pieces, as they stand one after the other.
using Parts = std::span<const std::span<const std::byte>>;

enum class Side : std::uint8_t { kWorker = 1, kAggregator = 2 };

/// Compares in a time that does not depend on the bytes.
[[nodiscard]] bool equal(const Mac& a, const Mac& b);

/// HMAC-SHA256 (RFC 2104): for what is rare, because it is slow, and needs no nonce. One thread at
/// a time.
class Hmac {
 public:
  Hmac();

  [[nodiscard]] Secret operator()(const Secret& key, Parts parts) const;

  /// The MAC of a handshake packet: the first half of that of at most 4 `parts` and the counter.
  [[nodiscard]] Mac handshake(const Secret& key, Parts parts, std::uint32_t counter) const;

  /// True when the handshake packet `datagram` was made with `key`.
  [[nodiscard]] bool proves(const Secret& key, std::span<const std::byte> datagram) const;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

/// HKDF-SHA256 (RFC 5869), extraction and expansion to one key.
[[nodiscard]] Secret hkdf_extract(std::span<const std::byte> salt, std::span<const std::byte> key);
[[nodiscard]] Secret hkdf_expand(const Secret& key, std::span<const std::byte> info);

/// What a job's key file gives. The key itself is not kept.
class JobKey {
 public:
  /// Throws std::invalid_argument when `key` is shorter than kMinKeyBytes.
  JobKey(std::uint32_t job, std::span<const std::byte> key);
  JobKey(const JobKey&) = default;
  JobKey& operator=(const JobKey&) = default;
  ~JobKey();

  /// For the handshake packets that `side` sends.
  [[nodiscard]] const Secret& handshake(Side side) const {
    return side == Side::kWorker ? from_worker_ : from_aggregator_;
  }

  /// For all else that the aggregator sends in the session that has this nonce and epoch.
  [[nodiscard]] Secret aggregator_session(std::uint32_t epoch, const Nonce& session) const;
  /// For all else that `rank` sends in it, when it joined with `worker` as its nonce.
  [[nodiscard]] Secret worker_session(std::uint32_t epoch, const Nonce& session, std::uint16_t rank,
                                      const Nonce& worker) const;

 private:
  std::uint32_t job_;
  Secret root_;
  Secret from_worker_;
  Secret from_aggregator_;
};

/// By number of the job.
using JobKeys = std::map<std::uint32_t, JobKey>;

using GmacNonce = std::array<std::uint8_t, 12>;

/// Four zero bytes and the counter: no other nonce is used under a session's keys.
[[nodiscard]] GmacNonce gmac_nonce(std::uint64_t counter);

/// AES-256-GMAC (NIST SP 800-38D) under one key.
class Gmac {
 public:
  explicit Gmac(const Secret& key);

  /// For packets to be sent, no nonce may come twice.
  [[nodiscard]] Mac operator()(const GmacNonce& nonce, Parts parts) const;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

/// Makes the trailers of one sender.
class Sealer {
 public:
  /// `counter`: what the sender's earlier keys have used, if there were any.
  explicit Sealer(const Secret& key, std::uint64_t counter = 0) : gmac_(key), counter_(counter) {}

  /// Takes a counter of its own for each datagram, also for one that is sent again.
  [[nodiscard]] Trailer seal(Parts parts) {
    const Mac mac = gmac_(gmac_nonce(++counter_), parts);
    return {mac, Be32{static_cast<std::uint32_t>(counter_)}};
  }

  [[nodiscard]] std::uint64_t counter() const { return counter_; }

 private:
  Gmac gmac_;
  std::uint64_t counter_;
};

/// Judges the trailers of one sender.
class Opener {
 public:
  explicit Opener(const Secret& key) : gmac_(key) {}

  enum class Verdict : std::uint8_t { kGood, kReplayed, kForged };

  /// Of a datagram that is long enough for a trailer. A good one is good once.
  [[nodiscard]] Verdict open(std::span<const std::byte> datagram);

 private:
  Gmac gmac_;
  ReplayWindow window_;
};

/// The trailer of a datagram that has one, and the proof of one that has that.
[[nodiscard]] Trailer read_trailer(std::span<const std::byte> datagram);
[[nodiscard]] Proof read_proof(std::span<const std::byte> datagram);

/// `length` zero bytes, at most a packet.
[[nodiscard]] std::span<const std::byte> zeros(std::size_t length);

}  // namespace natagg::proto
