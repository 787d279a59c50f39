// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/recording.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "worker_lib/blocked_signals.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/transport/frame.hpp"

namespace natagg::worker {
namespace {

// The file format, in the byte order of its writer. So little of it is needed, and in the ring
// already, that a library to write it would be in the way.
struct FileHeader {
  std::uint32_t magic = 0xA1B2'3C4D;  // pcap, times in ns
  std::uint16_t major = 2;
  std::uint16_t minor = 4;
  std::uint32_t zone = 0;
  std::uint32_t accuracy = 0;
  std::uint32_t most_bytes = 262'144;  // of a packet; what tools take for granted
  std::uint32_t link = 1;              // Ethernet
};
struct PacketHeader {
  std::uint32_t seconds;
  std::uint32_t nanoseconds;
  std::uint32_t captured;
  std::uint32_t length;
};
static_assert(sizeof(FileHeader) == 24 && sizeof(PacketHeader) == 16);

constexpr std::int64_t kNanoseconds = 1'000'000'000;

/// How long the writer sleeps where nobody wakes it, which would take the others a system call: a
/// fraction of what it takes a fast link to fill a ring.
constexpr std::chrono::milliseconds kPause{2};

/// The host's own, locally administered, or the group's.
net::MacAddress mac_of(std::uint32_t address) {
  if (address >> 28 == 0xE) return net::multicast_mac(address);
  return {{0x02, 0x00, static_cast<std::uint8_t>(address >> 24),
           static_cast<std::uint8_t>(address >> 16), static_cast<std::uint8_t>(address >> 8),
           static_cast<std::uint8_t>(address)}};
}

/// Appends `bytes` to the file, or returns the errno with which that failed.
int write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Packets in the whole file records that `pieces` are.
std::uint64_t count_packets(const std::array<std::span<const std::byte>, 2>& pieces) {
  std::uint64_t packets = 0;
  const std::size_t size = pieces[0].size() + pieces[1].size();
  for (std::size_t at = 0; at < size; ++packets) {
    std::array<std::byte, sizeof(PacketHeader)> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t place = at + i;
      bytes[i] = place < pieces[0].size() ? pieces[0][place] : pieces[1][place - pieces[0].size()];
    }
    PacketHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    at += sizeof header + header.captured;
  }
  return packets;
}

}  // namespace

void Recording::Track::add(std::int64_t time, const proto::Endpoint& from,
                           const proto::Endpoint& to, std::span<const std::byte> datagram) {
  if (error() != 0) {
    ++refused_;
    return;
  }
  const auto bytes = static_cast<std::uint32_t>(kFrameHeaders + datagram.size());
  const PacketHeader header{.seconds = static_cast<std::uint32_t>(time / kNanoseconds),
                            .nanoseconds = static_cast<std::uint32_t>(time % kNanoseconds),
                            .captured = bytes,
                            .length = bytes};
  std::array<std::byte, kFrameHeaders> frame{};
  const Station sender{.mac = mac_of(from.address), .endpoint = from};
  write_frame_headers(frame, sender, mac_of(to.address), to, datagram.size());
  const bool put = ring_.put<3>({std::as_bytes(std::span(&header, 1)), frame, datagram});
  ++(put ? put_ : refused_);
}

std::uint64_t Recording::Track::recorded() const {
  return error() == 0 ? put_ : written_.load();
}

std::uint64_t Recording::Track::unrecorded() const {
  return put_ + refused_ - recorded();
}

Recording::Recording(const std::string& path, std::size_t tracks, std::size_t memory)
    : ring_bytes_(memory / tracks) {
  open(path);
  const BlockedSignals blocked;
  try {
    thread_ = std::thread(&Recording::run, this);
  } catch (const std::system_error& error) {
    throw_system_error(error.code().value(), "pthread_create()", "`ulimit -u` limits threads");
  }
}

Recording::~Recording() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ending_.notify_one();
  thread_.join();
}

void Recording::open(const std::string& path) {
  const auto fail = [&path](int code, const char* call, const char* remedy) {
    throw_system_error(code, "record: " + std::string(call) + "(" + path + ")", remedy);
  };
  // It shows gradients: nobody else may read it. A pipe without a reader must not block.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK;
  file_ = FileDescriptor(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (file_.get() < 0) fail(errno, "open", "the folder must exist and be writable");
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail(errno, "fstat", "");
  if (!S_ISREG(status.st_mode)) fail(EINVAL, "open", "it is no regular file");
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    fail(errno, "flock", "another worker records to it: each needs a file of its own");
  }
  if (::ftruncate(file_.get(), 0) != 0) fail(errno, "ftruncate", "");
  const FileHeader header;
  if (const int error = write_all(file_.get(), std::as_bytes(std::span(&header, 1)))) {
    fail(error, "write", "");
  }
  size_ = sizeof header;
}

Recording::Track& Recording::add_track() {
  const std::lock_guard lock(mutex_);
  return tracks_.emplace_back(*this, ring_bytes_);
}

void Recording::run() {
  pthread_setname_np(pthread_self(), "natagg-record");
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool last = end_;
    for (Track& track : tracks_) drain(track);
    if (last) return;
    ending_.wait_for(lock, kPause, [this] { return end_; });
  }
}

void Recording::drain(Track& track) {
  const auto contents = track.ring_.contents();
  const std::size_t size = contents[0].size() + contents[1].size();
  if (size == 0) return;
  if (error_ == 0) {
    int error = write_all(file_.get(), contents[0]);
    if (error == 0) error = write_all(file_.get(), contents[1]);
    if (error == 0) {
      size_ += static_cast<std::int64_t>(size);
      track.written_ += count_packets(contents);
    } else {
      // No part of a packet may stay; where that fails too, readers tell of the cut one.
      static_cast<void>(::ftruncate(file_.get(), size_));
      error_ = error;
    }
  }
  track.ring_.release(size);
}

}  // namespace natagg::worker
