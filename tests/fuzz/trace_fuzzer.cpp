// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Any bytes as a capture file, and any packets in a capture that is right: they are read to the end
// or refused by name, and what is taken for natagg's packets is. Sessions of them are surveyed.

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "fenced.hpp"
#include "input.hpp"
#include "proto/packet.hpp"
#include "tools/trace/trace_survey.hpp"

namespace natagg::fuzz {
namespace {

using tools::TraceError;
using tools::TracePacket;
using tools::TraceReader;

void append(std::vector<std::uint8_t>& bytes, std::uint64_t number, std::size_t size) {
  // This machine's order, byte by byte: GCC 12 sees an overflow in an insertion.
  for (std::size_t i = 0; i < size; ++i) {
    bytes.push_back(reinterpret_cast<const std::uint8_t*>(&number)[i]);
  }
}

/// A capture of packets that look like natagg's but for what the input changes.
std::vector<std::uint8_t> compose(Input& input) {
  constexpr std::uint8_t links[] = {1, 228, 113, 101};
  std::vector<std::uint8_t> file;
  append(file, 0xA1B2'3C4D, 4);
  append(file, 0x0004'0002, 4);
  append(file, 0, 8);
  append(file, 262'144, 4);
  const std::uint8_t link = links[input.below(4)];
  append(file, link, 4);
  while (!input.empty()) {
    std::vector<std::uint8_t> frame;
    if (link == 1) frame.resize(12);
    if (link == 113) frame.resize(14);
    if (link == 1 || link == 113) {
      for (std::size_t tags = input.below(4); tags > 0; --tags) append(frame, 0x0081, 4);
      append(frame, 0x0008, 2);
    }
    const std::size_t values = input.below(200);
    const std::size_t payload = sizeof(proto::Header) + values;
    const std::size_t udp = frame.size() + 20;
    frame.resize(udp + 8 + payload);
    frame[udp - 20] = 0x45;
    frame[udp - 11] = 17;
    frame[udp + 4] = static_cast<std::uint8_t>((payload + 8) >> 8);
    frame[udp + 5] = static_cast<std::uint8_t>(payload + 8);
    proto::Header header = proto::make_header(static_cast<proto::Type>(1 + input.below(14)));
    if (header.type == proto::Type::kData || header.type == proto::Type::kResult) {
      header.count = proto::Be16{static_cast<std::uint16_t>(values)};
      header.fingerprint = proto::Be64{values};
    }
    std::memcpy(&frame[udp + 8], &header, sizeof(header));
    if (header.type == proto::Type::kJoin && values >= sizeof(proto::JoinBody)) {
      proto::JoinBody body{};
      body.world = proto::Be16{static_cast<std::uint16_t>(1 + input.below(2))};
      body.values = proto::Be16{128};
      body.window = proto::Be16{8};
      std::memcpy(&frame[udp + 8 + sizeof(header)], &body, sizeof(body));
    }
    for (std::size_t changes = input.below(4); changes > 0; --changes) {
      frame[input.take(2) % frame.size()] = input.byte();
    }
    const std::size_t captured =
        input.below(4) == 0 ? input.take(2) % (frame.size() + 1) : frame.size();
    append(file, 0, 8);
    append(file, captured, 4);
    append(file, frame.size(), 4);
    file.insert(file.end(), frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(captured));
  }
  return file;
}

void check(const TracePacket& packet, Fenced& fence) {
  const auto datagram = fence.hold(packet.datagram);
  require(proto::validate(datagram) == proto::Reject::kNone, "what is read is natagg's");
  require(packet.place.number > 0, "packets count from 1");
}

std::FILE* as_file(std::span<const std::uint8_t> bytes) {
  std::FILE* file = ::fmemopen(const_cast<std::uint8_t*>(bytes.data()), bytes.size(), "rb");
  require(file != nullptr, "memory can be a file");
  return file;
}

void survey(std::span<const std::uint8_t> bytes) {
  TraceReader reader(as_file(bytes), "trace");
  const tools::TraceSurvey survey(reader);
  std::uint64_t complete = 0;
  for (const tools::TraceSession& session : survey.sessions()) {
    for (const auto& [sequence, chunk] : session.chunks()) {
      require(chunk.complete() == (chunk.ranks == session.world()), "all ranks make a result");
      require(!chunk.complete() || chunk.expected.size() == chunk.terms.count, "a whole one");
      complete += chunk.complete() ? 1 : 0;
    }
  }
  require(complete == survey.complete_chunks(), "results are counted");
}

void read(std::span<const std::uint8_t> bytes) {
  static Fenced fence(1 << 18);
  try {
    TraceReader reader(as_file(bytes), "trace");
    while (const auto packet = reader.next()) check(*packet, fence);
    survey(bytes);
  } catch (const TraceError& error) {
    require(std::string(error.what()).find("trace") != std::string::npos,
            "an error names the file");
  }
}

}  // namespace
}  // namespace natagg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace natagg::fuzz;
  Input input({data, size});
  if (input.below(4) == 0) {
    if (!input.rest().empty()) read(input.rest());
  } else {
    read(compose(input));
  }
  return 0;
}
