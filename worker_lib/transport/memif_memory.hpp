// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The memory of one memif link, as its client sees it: two rings and their buffers. What the other
// end writes there is not believed: buffers are where this end put them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "worker_lib/transport/memif_layout.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::worker::memif {

/// Of a buffer for one frame, of MTU 9000 at most and without a tag.
inline constexpr std::size_t kMaxFrame = 9014;
/// A frame's first byte stands there in its buffer, so that what follows its 42 bytes of headers is
/// aligned to a cache line.
inline constexpr std::size_t kFrameStart = 22;

class Memory {
 public:
  /// Rings of 2^`log2_size` frames. Throws Error.
  explicit Memory(std::uint8_t log2_size);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint8_t log2_size() const { return log2_size_; }
  [[nodiscard]] std::uint32_t offset_of_ring(bool client_to_server) const;

  // --- Sending ---

  /// Where the next frame's bytes go, kMaxFrame of them; nothing while the ring is full.
  [[nodiscard]] std::optional<std::span<std::byte>> next_buffer();
  /// The frame in the next buffer is whole and has `length` bytes.
  void add(std::size_t length);
  /// Shows the other end what has been added.
  void publish();

  // --- Receiving ---

  /// Whether a frame, or a piece of one, has arrived.
  [[nodiscard]] bool arrived() const;
  /// A piece of a frame, in the order of arrival, and whether the frame goes on in the next one.
  /// Its bytes are this end's until release().
  struct Piece {
    std::span<std::byte> bytes;
    bool more = false;
  };
  [[nodiscard]] std::optional<Piece> next_piece();
  /// Gives back all pieces that next_piece() has returned.
  void release();

  /// Whether the other end writes to the ring's eventfd when it has filled something.
  void want_interrupts(bool wanted);

 private:
  struct Side {
    Ring* ring = nullptr;
    Descriptor* descriptors = nullptr;
    std::byte* buffers = nullptr;
  };
  [[nodiscard]] Side side(std::size_t number) const;
  [[nodiscard]] std::byte* buffer(const Side& side, std::uint16_t slot) const;
  void describe(const Side& side, std::uint16_t slot, std::size_t length);

  std::uint8_t log2_size_;
  std::size_t bytes_;
  FileDescriptor file_;
  std::byte* base_ = nullptr;
  Side out_;
  Side in_;
  std::uint16_t mask_;
  std::uint16_t sent_ = 0;      // head of out_, with what has not been published
  std::uint16_t taken_ = 0;     // up to which next_piece() has returned
  std::uint16_t released_ = 0;  // up to which release() has given back
};

}  // namespace natagg::worker::memif
