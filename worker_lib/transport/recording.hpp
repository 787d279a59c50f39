// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A capture file of a worker's packets (pcap with nanoseconds; Ethernet, IPv4, UDP). The threads
// that send and receive put frames into a ring each, and a thread of the recording's own writes
// them to the file. What finds a ring full, or a file that takes no more, is not recorded but
// counted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "proto/endpoint.hpp"
#include "worker_lib/transport/byte_ring.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::worker {

class Recording {
 public:
  /// One thread's way into the file.
  class Track {
   public:
    Track(const Recording& recording, std::size_t ring_bytes)
        : recording_(recording), ring_(ring_bytes) {}

    /// `time` is ns since 1970.
    void add(std::int64_t time, const proto::Endpoint& from, const proto::Endpoint& to,
             std::span<const std::byte> datagram);

    /// Packets that are in the file, or on their way to it.
    [[nodiscard]] std::uint64_t recorded() const;
    /// Packets that are not.
    [[nodiscard]] std::uint64_t unrecorded() const;
    /// errno of the write that ended the recording; 0: none has.
    [[nodiscard]] int error() const { return recording_.error_; }

   private:
    friend class Recording;

    const Recording& recording_;
    ByteRing ring_;
    std::uint64_t put_ = 0;
    std::uint64_t refused_ = 0;
    std::atomic<std::uint64_t> written_ = 0;
  };

  /// Memory of all tracks: what the fastest links bring while a disk is busy for a little.
  static constexpr std::size_t kMemory = std::size_t{64} << 20;

  /// Creates the file, or empties it, for up to `tracks` threads. Throws Error that names it.
  Recording(const std::string& path, std::size_t tracks, std::size_t memory = kMemory);

  /// Writes what is left, after the threads with tracks have ended.
  ~Recording();

  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Any thread. The track lives as long as this does.
  [[nodiscard]] Track& add_track();

 private:
  void open(const std::string& path);
  void run();
  void drain(Track& track);

  std::size_t ring_bytes_;
  FileDescriptor file_;
  std::int64_t size_ = 0;  // of the file, always of whole packets
  std::atomic<int> error_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable ending_;
  bool end_ = false;
  std::deque<Track> tracks_;

  std::thread thread_;  // last: it starts when all else exists
};

}  // namespace natagg::worker
