// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The client's end of a memif link: connects to the server's socket, shares its memory with it, and
// connects anew, with new memory, when the server is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "worker_lib/core/time.hpp"
#include "worker_lib/transport/memif_layout.hpp"
#include "worker_lib/transport/memif_memory.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::worker::memif {

struct Address {
  std::string path;      // of the server's socket
  std::uint32_t id = 0;  // of the interface there
};

class Link {
 public:
  /// Throws Error when the path is too long for a socket's.
  explicit Link(Address address);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Connects, if the last attempt is some time ago, and handles what the server says. Blocks at no
  /// time. Throws Error for want of memory.
  void advance(Time now);

  /// The rings while the link is up, else null.
  [[nodiscard]] Memory* memory() { return up_ ? memory_.get() : nullptr; }
  /// Grows when the link comes up.
  [[nodiscard]] std::uint32_t connections() const { return connections_; }

  /// errno of why the link is not up; 0 while it is.
  [[nodiscard]] int problem() const { return problem_; }

  /// Readable when advance() has something to do, or -1.
  [[nodiscard]] int control() const { return control_.get(); }
  /// An eventfd that is readable when frames have arrived and interrupts are wanted, or none.
  [[nodiscard]] const FileDescriptor& doorbell() const { return doorbell_; }
  /// When advance() wants to be called at the latest.
  [[nodiscard]] Time next_attempt() const { return control_.get() < 0 ? next_attempt_ : kNever; }

  static constexpr std::uint8_t kLog2Frames = 8;  // of a ring

 private:
  void connect();
  void disconnect(int problem);
  void receive();
  void handle(const Message& message);
  void handle_hello(const Hello& hello);
  void say_next();
  void send(const Message& message, int file);
  void send_ring(bool client_to_server, int doorbell);

  Address address_;
  FileDescriptor control_;
  FileDescriptor doorbell_;        // the server's ring to this end
  FileDescriptor their_doorbell_;  // never rung: DPDK's server polls
  std::unique_ptr<Memory> memory_;
  unsigned said_ = 0;  // messages of this connection
  bool up_ = false;
  std::uint32_t connections_ = 0;
  int problem_ = 0;
  Time next_attempt_ = 0;
};

}  // namespace natagg::worker::memif
