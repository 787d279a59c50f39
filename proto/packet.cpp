// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "proto/packet.hpp"

#include <bit>
#include <cstdio>
#include <cstring>

#include "proto/endpoint.hpp"
#include "proto/operation.hpp"

namespace natagg::proto {
namespace {

/// `size` is that of the datagram without its trailer.
Reject validate_values(const Header& header, std::size_t size) {
  const std::size_t count = header.count.value();
  if (count == 0 || count > kMaxValues) return Reject::kBadCount;
  if (header.type == Type::kPartial) {
    const bool has_set = size > sizeof(Header) + count;
    if (!has_set || size - sizeof(Header) - count > kMaxRankSetBytes) return Reject::kBadLength;
  } else if (size != sizeof(Header) + count) {
    return Reject::kBadLength;
  }
  const std::uint64_t length = from_fingerprint(header.fingerprint.value()).length;
  const std::uint64_t element = header.element.value();
  if (element > length || count > length - element) return Reject::kBadOperation;
  return Reject::kNone;
}

/// Without its trailer.
Reject validate_control(const Header& header, std::span<const std::byte> datagram) {
  if (header.count.value() != 0) return Reject::kBadCount;
  const std::size_t least = sizeof(Header) + body_size(header.type);
  if (datagram.size() < least) return Reject::kTooShort;
  const bool proves = (header.flags & kFlagAuthenticated) != 0 && has_proof(header, datagram);
  return proves && datagram.size() < least + sizeof(Proof) ? Reject::kTooShort : Reject::kNone;
}

}  // namespace

Reject validate(std::span<const std::byte> datagram, Keys keys) {
  if (datagram.size() < sizeof(Header)) return Reject::kTooShort;
  const Header header = read_header(datagram);
  if (header.magic.value() != kMagic) return Reject::kBadMagic;
  if (header.version != kVersion) return Reject::kBadVersion;
  if (codec(header) != Codec::kNat8) return Reject::kBadCodec;
  std::size_t size = datagram.size();
  if ((header.flags & kFlagAuthenticated) != 0) {
    if (keys == Keys::kNone) return Reject::kUnauthenticated;
    if (size < sizeof(Header) + sizeof(Trailer)) return Reject::kTooShort;
    size -= sizeof(Trailer);
  }
  switch (header.type) {
    case Type::kData:
    case Type::kResult:
    case Type::kPartial: return validate_values(header, size);
    case Type::kHello:
    case Type::kOffer:
    case Type::kJoin:
    case Type::kWelcome:
    case Type::kRefuse:
    case Type::kLeave:
    case Type::kHeartbeat:
    case Type::kProbe:
    case Type::kPending:
    case Type::kAbort:
    case Type::kMove:
    case Type::kChallenge:
    case Type::kNack: return validate_control(header, datagram.first(size));
  }
  return Reject::kBadType;
}

Header read_header(std::span<const std::byte> datagram) {
  Header header;
  std::memcpy(&header, datagram.data(), sizeof(Header));
  return header;
}

std::span<const std::uint8_t> payload(std::span<const std::byte> datagram) {
  return {reinterpret_cast<const std::uint8_t*>(datagram.data()) + sizeof(Header),
          read_header(datagram).count.value()};
}

std::span<const std::uint8_t> rank_set(std::span<const std::byte> datagram) {
  const Header header = read_header(datagram);
  const bool sealed = (header.flags & kFlagAuthenticated) != 0;
  const std::size_t begin = sizeof(Header) + header.count.value();
  const std::size_t end = datagram.size() - (sealed ? sizeof(Trailer) : 0);
  return {reinterpret_cast<const std::uint8_t*>(datagram.data()) + begin, end - begin};
}

std::uint16_t count_ranks(std::span<const std::uint8_t> ranks, std::size_t world) {
  if (ranks.size() != rank_set_bytes(world)) return 0;
  if (world % 8 != 0 && ranks.back() >> (world % 8) != 0) return 0;
  int count = 0;
  for (const std::uint8_t byte : ranks) count += std::popcount(byte);
  return static_cast<std::uint16_t>(count);
}

std::uint64_t instance_of(const Header& header, std::span<const std::byte> datagram) {
  switch (header.type) {
    // It comes first in all of their bodies.
    case Type::kHello:
    case Type::kOffer:
    case Type::kJoin:
    case Type::kWelcome:
    case Type::kRefuse:
    case Type::kChallenge: return read_body<HelloBody>(datagram).instance.value();
    default: return 0;
  }
}

bool aborts_unknown(const Header& header, std::span<const std::byte> datagram) {
  if (header.type != Type::kAbort) return false;
  const AbortReason reason = read_body<AbortBody>(datagram).reason;
  return reason == AbortReason::kUnknownSession || reason == AbortReason::kSuperseded;
}

bool has_proof(const Header& header, std::span<const std::byte> datagram) {
  return instance_of(header, datagram) != 0 || aborts_unknown(header, datagram);
}

std::string_view to_string(Type type) {
  switch (type) {
    case Type::kHello: return "HELLO";
    case Type::kOffer: return "OFFER";
    case Type::kJoin: return "JOIN";
    case Type::kWelcome: return "WELCOME";
    case Type::kRefuse: return "REFUSE";
    case Type::kLeave: return "LEAVE";
    case Type::kHeartbeat: return "HEARTBEAT";
    case Type::kProbe: return "PROBE";
    case Type::kData: return "DATA";
    case Type::kResult: return "RESULT";
    case Type::kPending: return "PENDING";
    case Type::kNack: return "NACK";
    case Type::kAbort: return "ABORT";
    case Type::kMove: return "MOVE";
    case Type::kChallenge: return "CHALLENGE";
    case Type::kPartial: return "PARTIAL";
  }
  return "unknown type";
}

std::string_view to_string(Reject reject) {
  switch (reject) {
    case Reject::kNone: return "accepted";
    case Reject::kTooShort: return "too_short";
    case Reject::kBadMagic: return "bad_magic";
    case Reject::kBadVersion: return "bad_version";
    case Reject::kBadType: return "bad_type";
    case Reject::kBadLength: return "bad_length";
    case Reject::kBadCount: return "bad_count";
    case Reject::kBadCodec: return "bad_codec";
    case Reject::kBadOperation: return "bad_operation";
    case Reject::kUnauthenticated: return "unauthenticated";
  }
  return "unknown reject";
}

std::string_view to_string(RefuseReason reason) {
  switch (reason) {
    case RefuseReason::kProtocolVersion: return "protocol version";
    case RefuseReason::kCodec: return "codec";
    case RefuseReason::kWorld: return "world size";
    case RefuseReason::kRank: return "rank outside the world";
    case RefuseReason::kRankTaken: return "rank taken";
    case RefuseReason::kValues: return "values per packet";
    case RefuseReason::kWindow: return "window";
    case RefuseReason::kShift: return "exponent shift";
    case RefuseReason::kRounding: return "rounding mode";
    case RefuseReason::kSeed: return "job seed";
    case RefuseReason::kPool: return "shards in the pool";
    case RefuseReason::kTooManyJobs: return "too many jobs";
    case RefuseReason::kTooManyWorkers: return "too many workers";
    case RefuseReason::kJobRunning: return "job is running";
    case RefuseReason::kNoMemory: return "out of slot memory";
    case RefuseReason::kMembers: return "the job has formed anew with other workers";
    case RefuseReason::kWrongKey: return "wrong key";
    case RefuseReason::kNoKey: return "no key of the job";
    case RefuseReason::kKeyRequired: return "key required";
    case RefuseReason::kStragglers: return "straggler deadline in ms";
    case RefuseReason::kQuorum: return "quorum";
    case RefuseReason::kPartialWorld: return "ranks of a job with partial results";
  }
  return "unknown reason";
}

std::string_view to_string(AbortReason reason) {
  switch (reason) {
    case AbortReason::kUnknownSession: return "unknown session";
    case AbortReason::kMemberLeft: return "member left";
    case AbortReason::kMemberSilent: return "member silent";
    case AbortReason::kMismatch: return "operations differ";
    case AbortReason::kSuperseded: return "superseded by a new session";
    case AbortReason::kLeftBehind: return "rank left behind";
  }
  return "unknown reason";
}

std::string to_string(const Header& header) {
  char text[256];
  const std::string_view type = to_string(header.type);
  std::snprintf(text, sizeof(text),
                "%.*s job %u epoch %u rank %u slot %u seq %u op %u element %llu count %u shift %d "
                "flags 0x%02x",
                static_cast<int>(type.size()), type.data(), header.job.value(),
                header.epoch.value(), header.rank.value(), header.slot.value(),
                header.sequence.value(), header.operation.value(),
                static_cast<unsigned long long>(header.element.value()), header.count.value(),
                header.shift, header.flags);
  return text;
}

std::string to_string(const Endpoint& endpoint) {
  char text[24];
  std::snprintf(text, sizeof(text), "%u.%u.%u.%u:%u", endpoint.address >> 24,
                endpoint.address >> 16 & 0xFF, endpoint.address >> 8 & 0xFF,
                endpoint.address & 0xFF, endpoint.port);
  return text;
}

std::string to_string(const Operation& operation) {
  constexpr const char* kTypes[] = {"float32", "float64", "float16", "bfloat16"};
  const auto type = static_cast<unsigned>(operation.type);
  const std::string name = type < std::size(kTypes) ? kTypes[type] : "type " + std::to_string(type);
  std::string reduction = "reduction " + std::to_string(static_cast<unsigned>(operation.reduction));
  if (operation.reduction == Reduction::kSum) reduction = "sum";
  if (operation.reduction == Reduction::kAverage) reduction = "average";
  if (operation.reduction == Reduction::kPartialSum) reduction = "partial sum";
  if (operation.reduction == Reduction::kPartialAverage) reduction = "partial average";
  return reduction + " of " + std::to_string(operation.length) + " " + name;
}

}  // namespace natagg::proto
