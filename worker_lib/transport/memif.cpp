// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/memif.hpp"

#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <string>

#include "worker_lib/error.hpp"

namespace natagg::worker {
namespace {

/// Frames that are shown to the other end at a time, so that it works while this end encodes.
constexpr std::size_t kPublished = 8;

/// How long a full ring may hold up the thread in one send() before datagrams are given up, and how
/// often it looks meanwhile.
constexpr Time kSendPatience = 4'000'000;
constexpr long kLook_ns = 20'000;

/// A server's doorbell can miss a wish for interrupts that comes while it fills the ring. These
/// bound the sleep that follows.
constexpr Time kShortestCap = 500'000;
constexpr Time kLongestCap = 20'000'000;

Time now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Room for a frame, which the other end may yet make.
std::optional<std::span<std::byte>> await_buffer(memif::Memory& memory, Time patience_ends) {
  auto buffer = memory.next_buffer();
  if (buffer) return buffer;
  memory.publish();
  while (!buffer && now() < patience_ends) {
    const timespec look{.tv_sec = 0, .tv_nsec = kLook_ns};
    ::nanosleep(&look, nullptr);
    buffer = memory.next_buffer();
  }
  return buffer;
}

}  // namespace

memif::Address parse_memif(std::string_view text) {
  constexpr std::string_view kId = ",id=";
  const std::size_t comma = text.find(',');
  memif::Address address{.path = std::string(text.substr(0, comma)), .id = 0};
  const auto refuse = [&](const char* why) {
    throw Error(NATAGG_INVALID_ARGUMENT, "transport: \"memif:" + std::string(text) + "\" " + why);
  };
  if (address.path.empty()) refuse("names no socket, such as memif:/run/natagg/memif.sock,id=0");
  if (comma == std::string_view::npos) return address;
  std::string_view rest = text.substr(comma);
  if (!rest.starts_with(kId)) refuse("has something else than id= behind the path");
  rest.remove_prefix(kId.size());
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), address.id);
  if (error != std::errc{} || stop != rest.data() + rest.size()) refuse("has no number for an id");
  return address;
}

MemifTransport::MemifTransport(const MemifConfig& config)
    : self_(make_station(config.local, config.identity)),
      neighbours_(config.aggregators),
      link_(config.address),
      scratch_(kBatch),
      idle_cap_(kShortestCap) {
  wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_.get() < 0) throw_system_error(errno, "eventfd()", "`ulimit -n` limits open files");
  look_after_link();
}

// --- The link and its neighbours ---

void MemifTransport::look_after_link() {
  link_.advance(now());
  memif::Memory* const memory = link_.memory();
  if (memory == nullptr || connections_seen_ == link_.connections()) return;
  // Another server may have another address.
  connections_seen_ = link_.connections();
  neighbours_.forget();
  ask_for_neighbours(*memory);
}

void MemifTransport::ask_for_neighbours(memif::Memory& memory) {
  neighbours_.ask_when_due(now(), [&](std::uint32_t address) {
    const auto buffer = memory.next_buffer();
    if (!buffer) return;
    write_arp_request(*buffer, self_, address);
    memory.add(kArpFrame);
  });
  memory.publish();
}

// --- Sending ---

void MemifTransport::send(std::span<const Outgoing> datagrams) {
  memif::Memory* const memory = link_.memory();
  if (memory == nullptr) {
    send_failures_ += datagrams.size();
    return;
  }
  std::size_t added = 0;
  const Time patience_ends = now() + kSendPatience;
  for (const Outgoing& datagram : datagrams) {
    if (!send_one(*memory, datagram, patience_ends)) {
      ++send_failures_;
    } else if (++added % kPublished == 0) {
      memory->publish();
    }
  }
  memory->publish();
}

bool MemifTransport::send_one(memif::Memory& memory, const Outgoing& datagram, Time patience_ends) {
  const std::span<const std::byte> bytes = datagram.datagram;
  const net::MacAddress* const mac = neighbours_.find(datagram.to.address);
  if (mac == nullptr) ask_for_neighbours(memory);
  if (mac == nullptr || kFrameHeaders + bytes.size() > memif::kMaxFrame) return false;
  const auto buffer = await_buffer(memory, patience_ends);
  if (!buffer) return false;
  write_frame_headers(*buffer, self_, *mac, datagram.to, bytes.size());
  std::memcpy(buffer->data() + kFrameHeaders, bytes.data(), bytes.size());
  memory.add(kFrameHeaders + bytes.size());
  return true;
}

// --- Receiving ---

std::span<const Incoming> MemifTransport::receive() {
  if (link_.memory() == nullptr) look_after_link();
  memif::Memory* const memory = link_.memory();
  if (memory == nullptr) return {};
  memory->release();
  std::size_t count = 0;
  while (count < kBatch) {
    const auto frame = next_frame(*memory, count);
    if (!frame) break;
    idle_cap_ = kShortestCap;
    const Received received = read_frame(*frame, self_);
    if (const auto* datagram = std::get_if<Datagram>(&received)) {
      incoming_[count++] = {.datagram = datagram->bytes, .source = datagram->source};
    } else if (const auto* neighbour = std::get_if<Neighbour>(&received)) {
      neighbours_.learn(*neighbour);
    }
  }
  return {incoming_.data(), count};
}

/// Of a frame in several pieces, a copy in scratch_[scratch]. A server writes all pieces of a frame
/// before it shows the first.
std::optional<std::span<const std::byte>> MemifTransport::next_frame(memif::Memory& memory,
                                                                     std::size_t scratch) {
  auto piece = memory.next_piece();
  if (!piece) return std::nullopt;
  if (!piece->more) return piece->bytes;
  std::span<std::byte> room = scratch_[scratch];
  std::size_t length = 0;
  for (; piece; piece = piece->more ? memory.next_piece() : std::nullopt) {
    const std::size_t size = std::min(piece->bytes.size(), room.size() - length);
    std::memcpy(room.data() + length, piece->bytes.data(), size);
    length += size;
  }
  return room.first(length);
}

// --- Waiting ---

void MemifTransport::wait(Time nanoseconds) {
  const memif::Memory* const memory = link_.memory();
  if (nanoseconds <= 0 || (memory != nullptr && memory->arrived())) return;
  sleep(nanoseconds);
}

void MemifTransport::sleep(Time nanoseconds) {
  memif::Memory* const memory = link_.memory();
  if (memory != nullptr) {
    memory->want_interrupts(true);
    if (memory->arrived()) return memory->want_interrupts(false);
    nanoseconds = std::min(nanoseconds, idle_cap_);
    idle_cap_ = std::min(2 * idle_cap_, kLongestCap);
  } else {
    nanoseconds = std::clamp<Time>(link_.next_attempt() - now(), 0, nanoseconds);
  }
  constexpr Time second = 1'000'000'000;
  constexpr Time longest = 3600 * second;  // early is allowed, and time_t may be 32 bits
  nanoseconds = std::min(nanoseconds, longest);
  std::array<pollfd, 3> polled{{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                {.fd = link_.control(), .events = POLLIN, .revents = 0},
                                {.fd = link_.doorbell().get(), .events = POLLIN, .revents = 0}}};
  const timespec timeout{.tv_sec = static_cast<time_t>(nanoseconds / second),
                         .tv_nsec = static_cast<long>(nanoseconds % second)};
  const int ready = ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
  if (memory != nullptr) memory->want_interrupts(false);
  if (ready <= 0) return;
  if (polled[0].revents != 0) wake_.reset_event();
  if (polled[2].revents != 0) link_.doorbell().reset_event();
  if (polled[1].revents != 0) look_after_link();
}

void MemifTransport::wake() {
  const std::uint64_t one = 1;
  // Fails only when 2^64 - 2 calls are pending already, which wake as well.
  [[maybe_unused]] const ssize_t size = ::write(wake_.get(), &one, sizeof one);
}

TransportStats MemifTransport::stats() const {
  TransportStats stats{.send_failures = send_failures_, .last_send_error = link_.problem()};
  if (stats.last_send_error == 0 && !neighbours_.any_known()) stats.last_send_error = EHOSTUNREACH;
  return stats;
}

}  // namespace natagg::worker
