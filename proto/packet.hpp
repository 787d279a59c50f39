// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The natagg packet: the one definition of what a worker, an aggregator and a switch exchange
// as the payload of a UDP datagram over IPv4. specification.md explains each field and rule;
// vectors/packets.csv ties both, the P4 program and the dissector together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "proto/endian.hpp"

namespace natagg::proto {

inline constexpr std::uint16_t kMagic = 0x4E41;  // "NA"
inline constexpr std::uint8_t kVersion = 1;

/// UDP port of an aggregator's first shard; shard i listens on the base port + i.
inline constexpr std::uint16_t kDefaultPort = 4790;

/// `rank` of an aggregator, and of "every rank".
inline constexpr std::uint16_t kAggregatorRank = 0xFFFF;
inline constexpr std::uint16_t kMaxWorld = 0xFFFF;  // ranks 0 to 65,534

enum class Type : std::uint8_t {
  kHello = 1,      // worker: which shards has this aggregator? padded to probe the path
  kOffer = 2,      // aggregator: the answer, padded alike
  kJoin = 3,       // worker: take me into this job, on these terms
  kWelcome = 4,    // aggregator: the session's epoch and terms, forming or ready
  kRefuse = 5,     // aggregator: why not, with both numbers
  kLeave = 6,      // worker: done or giving up, and why; the aggregator echoes it
  kHeartbeat = 7,  // worker: alive; the aggregator echoes it
  kProbe = 8,      // aggregator, by multicast: who hears this?
  kData = 9,       // worker: one chunk of values
  kResult = 10,    // aggregator: the chunk's recompressed sum
  kPending = 11,   // aggregator: have your chunk, still waiting for these ranks
  kAbort = 12,     // aggregator: the session cannot go on, and who is the cause
  kMove = 13,      // aggregator: a place of the pool is joined again here; come too
  // aggregator: send the JOIN again with this nonce, to prove that it is no old one
  kChallenge = 14,
  // aggregator: the chunk's recompressed sum over some ranks, and which; worker: the same, had from
  // an aggregator that is lost
  kPartial = 15,
  kNack = 16,  // aggregator: these chunks of yours are lost; send them again
};

/// Bits 3..0 of Header::flags; bits 7..4 hold the Codec.
enum Flag : std::uint8_t {
  kFlagSpecials = 1,       // the payload holds Inf or NaN
  kFlagNearest = 2,        // rounding to nearest; clear: stochastic
  kFlagAuthenticated = 4,  // the datagram ends with a Trailer
  kFlagMulticast = 8,      // worker: hears the multicast group; aggregator: sent by multicast
};

enum class Codec : std::uint8_t { kNat8 = 0 };

struct Header {
  Be16 magic;            //  0
  std::uint8_t version;  //  2
  Type type;             //  3
  Be32 job;              //  4  chosen by the user; several jobs share an aggregator
  Be32 epoch;            //  8  given by the aggregator at join; 0 before
  Be16 rank;           // 12  worker: sender's; aggregator: addressee's, or kAggregatorRank for all
  Be16 slot;           // 14  sequence modulo the session's window
  Be32 sequence;       // 16  of the chunk on this shard; serial arithmetic
  Be32 operation;      // 20  index of the all-reduce in its job
  Be64 element;        // 24  index in the operation of the chunk's first value
  Be64 fingerprint;    // 32  length, type and reduction: operation.hpp
  Be16 count;          // 40  values in the payload; 0 in control packets
  std::int8_t shift;   // 42  a code c stands for 2^(c - 50 + shift)
  std::uint8_t flags;  // 43  Flag bits and Codec
};
static_assert(sizeof(Header) == 44 && alignof(Header) == 1);
static_assert(offsetof(Header, job) == 4 && offsetof(Header, sequence) == 16);
static_assert(offsetof(Header, element) == 24 && offsetof(Header, count) == 40);

[[nodiscard]] constexpr Codec codec(const Header& header) {
  return static_cast<Codec>(header.flags >> 4);
}

// --- Bodies of the control packets. Each follows the header; zero padding may follow it. ---

struct HelloBody {
  Be64 instance;  // random, one per worker object: tells a restarted worker from a duplicate
};

struct OfferBody {
  Be64 instance;     // echoed
  Be16 shards;       // of this aggregator, on consecutive ports
  Be16 max_values;   // a packet
  Be16 max_window;   // slots a session may have
  Be16 max_workers;  // in a job
};

/// JoinBody::flags.
enum JoinFlag : std::uint8_t {
  kJoinValuesPinned = 1,  // refuse rather than negotiate another number of values a packet
  kJoinUntouched = 2,     // has no result of this shard's chunks yet
  kJoinWaited = 4,        // this shard has said that it takes no more jobs, and not WELCOME since
};

struct JoinBody {
  Be64 instance;
  Be64 seed;              // of the job's randomness; every rank's must be equal
  Be64 members;           // digest of the ranks whose session is to be resumed; 0: a new job
  Be16 world;             // ranks in the job
  Be16 values;            // proposed values a packet; the JOIN is padded to that packet's length
  Be16 window;            // proposed slots, a power of two
  Be16 shard;             // this shard's place in the worker's pool ...
  Be16 shards;            // ... of so many; every rank must list the same pool
  std::uint8_t rounding;  // Rounding
  std::uint8_t flags;     // JoinFlag
  Be32 resume;            // sequence of the first chunk without a result, when members is not 0
  Be32 held;              // chunks from `resume` to the last with a result; 0: has none of them
  Be16 moves;             // how often this place of the pool has moved to another aggregator
  Be16 stragglers;        // ms that a chunk may wait for ranks; 0: no result is ever partial
  Be16 quorum;            // ranks that a partial result has at least; 0 where there are none
  std::uint8_t reserved[2];
};

enum class SessionState : std::uint8_t { kForming = 1, kReady = 2 };

struct WelcomeBody {
  Be64 instance;           // echoed where the packet answers one JOIN, else 0
  Be64 members;            // digest of all ranks' instances; equal on every shard of the pool
  Be32 first_sequence;     // of the session's first chunk on this shard
  Be32 multicast_address;  // group of this session, 0 for none
  Be16 multicast_port;
  Be16 values;   // agreed values a packet: the least proposed
  Be16 window;   // agreed slots: the least proposed
  Be16 joined;   // ranks here so far
  Be16 missing;  // lowest rank not here, kAggregatorRank for none
  Be16 shard;    // place in the pool: one shard may stand in for another's place
  Be16 moves;    // the most that any rank joined with
  SessionState state;
  std::uint8_t reserved;
};

enum class RefuseReason : std::uint8_t {
  kProtocolVersion = 1,
  kCodec = 2,
  kWorld = 3,
  kRank = 4,
  kRankTaken = 5,
  kValues = 6,
  kWindow = 7,
  kShift = 8,
  kRounding = 9,
  kSeed = 10,
  kPool = 11,
  kTooManyJobs = 12,
  kTooManyWorkers = 13,
  kJobRunning = 14,
  kNoMemory = 15,
  kMembers = 16,
  kWrongKey = 17,     // the aggregator has another key of the job
  kNoKey = 18,        // the aggregator has no key of the job
  kKeyRequired = 19,  // the packet proves no key, and the job needs one
  kStragglers = 20,
  kQuorum = 21,
  kPartialWorld = 22,  // more ranks than a partial result can list
};

struct RefuseBody {
  Be64 instance;  // echoed
  Be64 yours;
  Be64 ours;  // the session's or the aggregator's number, where the reason has one
  RefuseReason reason;
  std::uint8_t reserved;
  Be16 shard;  // of the JOIN
};

/// Why a worker leaves.
enum class LeaveReason : std::uint8_t {
  kClosed = 1,          // its user is done with the job
  kTimedOut = 2,        // one of its operations missed its deadline
  kRankLost = 3,        // it was told that another rank is lost
  kAggregatorLost = 4,  // an aggregator of its pool is lost
  kMismatch = 5,        // the ranks submitted different operations
  kRefused = 6,         // an aggregator of its pool refuses it
};

/// Carries the cause on, to ranks that have not heard of it from where it came about.
struct LeaveBody {
  Be64 fingerprint;        // kMismatch: what `rank` submitted
  Be64 other_fingerprint;  // kMismatch: what `other_rank` submitted
  Be32 operation;          // kMismatch: the operation index `rank` sent
  Be32 other_operation;    // kMismatch: the operation index `other_rank` sent
  Be16 rank;               // kMismatch: one of the two; else whom the leaver was waiting for
  Be16 other_rank;         // kMismatch: the other; else kAggregatorRank, as `rank` is for nobody
  LeaveReason reason;
  std::uint8_t reserved[3];
};

struct ChallengeBody {
  Be64 instance;  // echoed
};

struct PendingBody {
  Be16 missing;        // lowest rank whose contribution is not here
  Be16 missing_count;  // ranks whose contribution is not here; 0: yours is not either, for
                       // `missing` has not come as far as the chunk a window before
};

/// So many packets may overtake another without its being lost (RFC 9002, 6.1.1).
inline constexpr std::uint32_t kReordering = 3;

/// Chunks that one NACK can tell of.
inline constexpr std::uint32_t kNackChunks = 64;

/// To one rank, about its chunks from Header::sequence on.
struct NackBody {
  Be64 lacking;  // bit i: chunk sequence + i is lost
};

enum class AbortReason : std::uint8_t {
  kUnknownSession = 1,  // no such job or epoch here: the aggregator restarted, or the job did
  kMemberLeft = 2,      // `rank` left while others wait for it
  kMemberSilent = 3,    // `rank` sent nothing for the member time-out
  kMismatch = 4,        // `rank` and `other_rank` submitted different operations
  kSuperseded = 5,      // the job has formed anew without this worker
  kLeftBehind = 6,      // a rank is so late that the others go on without it
};

struct AbortBody {
  Be64 fingerprint;        // kMismatch: what `rank` submitted
  Be64 other_fingerprint;  // kMismatch: what `other_rank` submitted
  Be32 operation;          // kMismatch: the operation index `rank` sent
  Be32 other_operation;    // kMismatch: the operation index `other_rank` sent
  Be16 rank;
  Be16 other_rank;  // kMismatch; kMemberLeft: whom `rank` was waiting for; else kAggregatorRank
  AbortReason reason;
  LeaveReason cause;  // kMemberLeft: why `rank` left; else 0
  std::uint8_t reserved[2];
};

/// To the members of another session of the same job on the same shard.
struct MoveBody {
  Be64 members;  // digest of the ranks that are to come
  Be16 shard;    // the place in the pool
  Be16 moves;    // its moves, with this one
};

static_assert(sizeof(HelloBody) == 8 && sizeof(OfferBody) == 16 && sizeof(JoinBody) == 52);
static_assert(sizeof(WelcomeBody) == 40 && sizeof(RefuseBody) == 28 && sizeof(MoveBody) == 12);
static_assert(sizeof(LeaveBody) == 32 && sizeof(PendingBody) == 4 && sizeof(AbortBody) == 32);
static_assert(sizeof(ChallengeBody) == 8 && sizeof(NackBody) == 8);

/// Bytes a control packet of `type` needs after its header; 0 for those that carry values.
[[nodiscard]] constexpr std::size_t body_size(Type type) {
  switch (type) {
    case Type::kHello: return sizeof(HelloBody);
    case Type::kOffer: return sizeof(OfferBody);
    case Type::kJoin: return sizeof(JoinBody);
    case Type::kWelcome: return sizeof(WelcomeBody);
    case Type::kRefuse: return sizeof(RefuseBody);
    case Type::kLeave: return sizeof(LeaveBody);
    case Type::kPending: return sizeof(PendingBody);
    case Type::kNack: return sizeof(NackBody);
    case Type::kAbort: return sizeof(AbortBody);
    case Type::kMove: return sizeof(MoveBody);
    case Type::kChallenge: return sizeof(ChallengeBody);
    case Type::kHeartbeat:
    case Type::kProbe:
    case Type::kData:
    case Type::kResult:
    case Type::kPartial: return 0;
  }
  return 0;
}

// --- Authentication: what an authenticated datagram ends with. authentication.hpp makes it. ---

using Nonce = std::array<std::uint8_t, 16>;
using Mac = std::array<std::uint8_t, 16>;

/// The last bytes of every authenticated datagram.
struct Trailer {
  Mac mac;       // of all that goes before the trailer, and of the counter
  Be32 counter;  // the lower half of the sender's
};

/// What stands before the trailer of the datagrams that belong to no session.
struct Proof {
  Nonce worker;      // the worker's, fresh for each joining; echoed. ABORT: the answered MAC
  Nonce aggregator;  // CHALLENGE: the challenge; JOIN: echoed; WELCOME: the session's; else zero
};

static_assert(sizeof(Trailer) == 20 && alignof(Trailer) == 1 && sizeof(Proof) == 32);

// --- Sizes ---

inline constexpr std::size_t kIpUdpBytes = 28;  // IPv4 without options, and UDP
inline constexpr std::size_t kTrailerBytes = sizeof(Trailer);
inline constexpr std::size_t kValuesMultiple = 128;  // a packet's values: whole random rows
inline constexpr std::size_t kMinValues = 128;
inline constexpr std::size_t kMaxValues = 8832;      // what MTU 9000 carries
inline constexpr std::uint16_t kMaxWindow = 0x8000;  // slots, a power of two
inline constexpr std::uint16_t kMaxShards = 256;     // of one aggregator

/// The most values a packet can carry over a path of `mtu` bytes: 1408 at 1500, 8832 at 9000;
/// 0 when the path cannot carry even kMinValues.
[[nodiscard]] constexpr std::size_t values_for_mtu(std::size_t mtu) {
  constexpr std::size_t overhead = kIpUdpBytes + sizeof(Header) + kTrailerBytes;
  if (mtu < overhead + kMinValues) return 0;
  const std::size_t values = (mtu - overhead) / kValuesMultiple * kValuesMultiple;
  return values < kMaxValues ? values : kMaxValues;
}
static_assert(values_for_mtu(1500) == 1408 && values_for_mtu(9000) == kMaxValues);

/// Length of the largest datagram of a session with `values` values a packet; JOIN and HELLO
/// are padded to it.
[[nodiscard]] constexpr std::size_t datagram_size(std::size_t values) {
  return sizeof(Header) + values + kTrailerBytes;
}

/// Whether the receiver has keys, and so understands authenticated datagrams.
enum class Keys : bool { kNone = false, kSome = true };

// --- Sets of ranks: what follows the values of kPartial. Bit r % 8 of byte r / 8 is rank r's. ---

inline constexpr std::uint16_t kMaxPartialWorld = 512;
inline constexpr std::size_t kMaxRankSetBytes = kMaxPartialWorld / 8;

[[nodiscard]] constexpr std::size_t rank_set_bytes(std::size_t world) {
  return (world + 7) / 8;
}

[[nodiscard]] constexpr bool holds(std::span<const std::uint8_t> ranks, std::size_t rank) {
  return (ranks[rank / 8] >> (rank % 8) & 1) != 0;
}

/// How many results of a slot, before its latest two, an aggregator keeps for ranks that are late.
inline constexpr std::uint32_t kLateWindows = 13;
/// How long all wait, at least, for ranks that have used that up, and the longest time-out of a
/// worker in such a job: it tries often enough not to be lost for a few packets in a row.
inline constexpr std::int64_t kLatePatience_ns = 500'000'000;
inline constexpr std::int64_t kLateTimeout_ns = kLatePatience_ns / 8;
/// How many windows of what it sent, or got, a worker keeps for the time when an aggregator is
/// lost.
inline constexpr std::uint32_t kKeptWindows = 2;
inline constexpr std::uint32_t kKeptPartialWindows = kLateWindows + 3;

/// How many ranks of `world` are in the set, or 0 when it is not of this length or holds others.
[[nodiscard]] std::uint16_t count_ranks(std::span<const std::uint8_t> ranks, std::size_t world);

/// As datagram_size(), of a session whose results may be partial.
[[nodiscard]] constexpr std::size_t partial_datagram_size(std::size_t values, std::size_t world,
                                                          Keys keys) {
  const std::size_t trailer = keys == Keys::kSome ? kTrailerBytes : 0;
  const std::size_t partial = sizeof(Header) + values + rank_set_bytes(world) + trailer;
  return partial > datagram_size(values) ? partial : datagram_size(values);
}

/// The most values a packet of such a session, so that its datagrams are not longer than those of
/// other sessions with `values`.
[[nodiscard]] constexpr std::size_t partial_values(std::size_t values, std::size_t world,
                                                   Keys keys) {
  std::size_t least = values;
  while (least != 0 && partial_datagram_size(least, world, keys) > datagram_size(values)) {
    least -= least < kValuesMultiple ? least : kValuesMultiple;
  }
  return least;
}
static_assert(partial_values(1408, 160, Keys::kNone) == 1408);
static_assert(partial_values(1408, 512, Keys::kSome) == 1280);

// --- Reading ---

/// Why a datagram is not a natagg packet. The first rows of the aggregator's counters.
enum class Reject : std::uint8_t {
  kNone = 0,
  kTooShort,  // shorter than its header or body
  kBadMagic,
  kBadVersion,
  kBadType,
  kBadLength,  // DATA or RESULT: not header + count values; PARTIAL: no set of ranks after them
  kBadCount,   // with values: none, or more than a packet may carry
  kBadCodec,
  kBadOperation,     // element + count is beyond the fingerprint's length
  kUnauthenticated,  // authenticated where there is no key, or not where there must be one
};
inline constexpr std::size_t kRejects = 10;

/// Checks everything about `datagram` that needs no state, which its MAC does. Reads no byte beyond
/// it; anything not known to be right is rejected.
[[nodiscard]] Reject validate(std::span<const std::byte> datagram, Keys keys = Keys::kNone);

/// The header of a datagram of at least sizeof(Header) bytes.
[[nodiscard]] Header read_header(std::span<const std::byte> datagram);

/// The values of a valid kData, kResult or kPartial packet.
[[nodiscard]] std::span<const std::uint8_t> payload(std::span<const std::byte> datagram);

/// The set of ranks of a valid kPartial packet.
[[nodiscard]] std::span<const std::uint8_t> rank_set(std::span<const std::byte> datagram);

/// The body of a valid control packet of the type that has it.
template <typename Body>
[[nodiscard]] Body read_body(std::span<const std::byte> datagram) {
  static_assert(alignof(Body) == 1);
  Body body;
  __builtin_memcpy(&body, datagram.data() + sizeof(Header), sizeof(Body));
  return body;
}

/// The instance that a valid control packet is about: 0 where its type has none, and where it is
/// for every worker.
[[nodiscard]] std::uint64_t instance_of(const Header& header, std::span<const std::byte> datagram);

/// True for an ABORT by a shard that does not know the session, and so cannot have its keys.
[[nodiscard]] bool aborts_unknown(const Header& header, std::span<const std::byte> datagram);

/// True when a valid datagram has a Proof, if it is authenticated: it names an instance, or answers
/// what belongs to no session.
[[nodiscard]] bool has_proof(const Header& header, std::span<const std::byte> datagram);

/// A header with magic, version and type set and all else zero.
[[nodiscard]] constexpr Header make_header(Type type) {
  Header header{};
  header.magic = Be16{kMagic};
  header.version = kVersion;
  header.type = type;
  return header;
}

// --- Names, for logs, counters and errors ---

[[nodiscard]] std::string_view to_string(Type type);
[[nodiscard]] std::string_view to_string(Reject reject);
[[nodiscard]] std::string_view to_string(RefuseReason reason);
[[nodiscard]] std::string_view to_string(AbortReason reason);

/// "DATA job 7 epoch 3 rank 2 slot 5 seq 4294967045 op 0 element 1408 count 1408 shift 0 flags
/// 0x00".
[[nodiscard]] std::string to_string(const Header& header);

}  // namespace natagg::proto
