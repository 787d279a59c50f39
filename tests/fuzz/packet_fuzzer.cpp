// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Any datagram, and any that is right but for a few fields, is either rejected by name or safe to
// read by all who read packets.

#include <cstring>

#include "datagrams.hpp"
#include "fenced.hpp"
#include "proto/operation.hpp"

namespace natagg::fuzz {
namespace {

using proto::Header;
using proto::Reject;
using proto::Type;

constexpr std::size_t kLargest = sizeof(Header) + proto::kMaxValues + 512;

bool carries_values(const Header& header) {
  return header.type == Type::kData || header.type == Type::kResult ||
         header.type == Type::kPartial;
}

/// A packet that is valid before it is mutated.
void compose(Datagram& datagram, Input& input) {
  Header header = proto::make_header(static_cast<Type>(1 + input.below(15)));
  header.job = proto::Be32{static_cast<std::uint32_t>(input.take(4))};
  header.flags = static_cast<std::uint8_t>(input.byte() & 0x0B);
  std::size_t size = sizeof(Header) + proto::body_size(header.type);
  if (carries_values(header)) {
    const std::size_t most = input.below(16) == 0 ? proto::kMaxValues : 64;
    const auto count = static_cast<std::uint16_t>(1 + input.take(2) % most);
    const std::uint64_t length = input.take(7);
    header.count = proto::Be16{count};
    header.fingerprint = proto::Be64{input.take(1) << 56 | length};
    header.element = proto::Be64{length >= count ? length - count : 0};
    size += count;
    if (header.type == Type::kPartial) size += input.byte() % (proto::kMaxRankSetBytes + 2);
  } else {
    size += input.byte();
  }
  write(datagram, header, size);
  for (std::size_t at = sizeof(Header); at < datagram.size() && !input.empty(); ++at) {
    datagram[at] = static_cast<std::byte>(input.byte());
  }
}

template <typename Body>
void read_in_full(std::span<const std::byte> datagram) {
  const Body body = proto::read_body<Body>(datagram);
  require(std::memcmp(&body, datagram.data() + sizeof(Header), sizeof(body)) == 0,
          "a body is read as it stands");
}

void read_body_of(Type type, std::span<const std::byte> datagram) {
  switch (type) {
    case Type::kHello: return read_in_full<proto::HelloBody>(datagram);
    case Type::kOffer: return read_in_full<proto::OfferBody>(datagram);
    case Type::kJoin: return read_in_full<proto::JoinBody>(datagram);
    case Type::kWelcome: return read_in_full<proto::WelcomeBody>(datagram);
    case Type::kRefuse: return read_in_full<proto::RefuseBody>(datagram);
    case Type::kLeave: return read_in_full<proto::LeaveBody>(datagram);
    case Type::kPending: return read_in_full<proto::PendingBody>(datagram);
    case Type::kNack: return read_in_full<proto::NackBody>(datagram);
    case Type::kAbort: return read_in_full<proto::AbortBody>(datagram);
    case Type::kMove: return read_in_full<proto::MoveBody>(datagram);
    case Type::kChallenge: return read_in_full<proto::ChallengeBody>(datagram);
    default: return;
  }
}

void check_values(const Header& header, std::span<const std::byte> datagram) {
  const auto values = proto::payload(datagram);
  const auto end = reinterpret_cast<const std::uint8_t*>(datagram.data()) + datagram.size();
  require(!values.empty() && values.size() <= proto::kMaxValues, "a count is 1 to the most");
  require(values.data() + values.size() <= end, "values are within their datagram");
  if (header.type == Type::kPartial) {
    const auto ranks = proto::rank_set(datagram);
    require(ranks.data() == values.data() + values.size() && ranks.data() + ranks.size() <= end &&
                !ranks.empty() && ranks.size() <= proto::kMaxRankSetBytes,
            "a set of ranks is within its datagram, after the values");
    const std::size_t world = 8 * ranks.size();
    require(proto::count_ranks(ranks, world) <= world, "a set has no more ranks than bits");
  }
  const auto operation = proto::from_fingerprint(header.fingerprint.value());
  require(proto::fingerprint(operation) == header.fingerprint.value(),
          "a fingerprint survives being read");
  const std::uint64_t element = header.element.value();
  require(element <= operation.length && values.size() <= operation.length - element,
          "a chunk ends within its operation");
}

void check_accepted(std::span<const std::byte> datagram, std::size_t shorter) {
  require(datagram.size() >= sizeof(Header), "a valid packet has a header");
  const Header header = proto::read_header(datagram);
  require(std::memcmp(&header, datagram.data(), sizeof(header)) == 0, "a header is read whole");
  require(header.magic.value() == proto::kMagic && header.version == proto::kVersion,
          "a valid packet has magic and version");
  require(proto::to_string(header.type) != "unknown type", "a valid packet has a known type");
  require(proto::to_string(header).starts_with(proto::to_string(header.type)),
          "a header can be printed");
  if (carries_values(header)) {
    check_values(header, datagram);
  } else {
    require(header.count.value() == 0, "a control packet has no values");
    read_body_of(header.type, datagram);
  }
  std::size_t needed =
      carries_values(header) ? datagram.size() : sizeof(Header) + proto::body_size(header.type);
  // A set of ranks may be shorter.
  if (header.type == Type::kPartial) needed = sizeof(Header) + header.count.value() + 1;
  const auto cut = datagram.first(shorter % datagram.size());
  require((proto::validate(cut) == Reject::kNone) == (cut.size() >= needed),
          "a packet that is cut is valid only while its body is whole");
}

}  // namespace
}  // namespace natagg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace natagg;
  static fuzz::Fenced memory(fuzz::kLargest);
  static fuzz::Datagram datagram;
  fuzz::Input input({data, size});
  const std::size_t shorter = input.take(2);
  if (input.below(8) == 0) {
    const auto raw =
        std::as_bytes(input.rest().first(std::min(input.rest().size(), fuzz::kLargest)));
    datagram.assign(raw.begin(), raw.end());
  } else {
    fuzz::Input mutations(input.bytes(8));
    fuzz::compose(datagram, input);
    fuzz::mutate(datagram, mutations);
  }
  const auto held = memory.hold(datagram);
  const proto::Reject reject = proto::validate(held);
  fuzz::require(proto::to_string(reject) != "unknown reject", "every reason has a name");
  if (reject == proto::Reject::kNone) fuzz::check_accepted(held, shorter);
  return 0;
}
