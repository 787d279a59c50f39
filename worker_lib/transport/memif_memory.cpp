// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/memif_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "worker_lib/error.hpp"

namespace natagg::worker::memif {
namespace {

constexpr std::size_t kBufferBytes = (kFrameStart + kMaxFrame + 63) / 64 * 64;

std::size_t ring_bytes(std::uint8_t log2_size) {
  return sizeof(Ring) + (sizeof(Descriptor) << log2_size);
}

std::uint16_t load(std::uint16_t& number) {
  return std::atomic_ref(number).load(std::memory_order_acquire);
}

void store(std::uint16_t& number, std::uint16_t value) {
  std::atomic_ref(number).store(value, std::memory_order_release);
}

FileDescriptor make_file(std::size_t bytes) {
  FileDescriptor file(::memfd_create("natagg-memif", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) throw_system_error(errno, "memfd_create()", "`ulimit -n` limits open files");
  // Sealed against shrinking, which would end the other end by SIGBUS.
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    throw_system_error(errno, "ftruncate(memfd, " + std::to_string(bytes) + ")", "");
  }
  return file;
}

}  // namespace

Memory::Memory(std::uint8_t log2_size)
    : log2_size_(log2_size),
      bytes_(2 * (ring_bytes(log2_size) + (kBufferBytes << log2_size))),
      file_(make_file(bytes_)),
      mask_(static_cast<std::uint16_t>((1U << log2_size) - 1)) {
  void* const base = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (base == MAP_FAILED) {
    throw_system_error(errno, "mmap(memfd, " + std::to_string(bytes_) + ")", "");
  }
  base_ = static_cast<std::byte*>(base);
  out_ = side(0);
  in_ = side(1);
  for (const Side& each : {out_, in_}) {
    each.ring->cookie = kCookie;
    each.ring->flags = kNoInterrupts;
    for (unsigned slot = 0; slot <= mask_; ++slot) {
      describe(each, static_cast<std::uint16_t>(slot), kMaxFrame);
    }
  }
}

Memory::~Memory() {
  ::munmap(base_, bytes_);
}

Memory::Side Memory::side(std::size_t number) const {
  std::byte* const ring = base_ + number * ring_bytes(log2_size_);
  return {.ring = reinterpret_cast<Ring*>(ring),
          .descriptors = reinterpret_cast<Descriptor*>(ring + sizeof(Ring)),
          .buffers = base_ + 2 * ring_bytes(log2_size_) + number * (kBufferBytes << log2_size_)};
}

std::uint32_t Memory::offset_of_ring(bool client_to_server) const {
  return static_cast<std::uint32_t>(client_to_server ? 0 : ring_bytes(log2_size_));
}

std::byte* Memory::buffer(const Side& side, std::uint16_t slot) const {
  return side.buffers + (slot & mask_) * kBufferBytes + kFrameStart;
}

void Memory::describe(const Side& side, std::uint16_t slot, std::size_t length) {
  side.descriptors[slot & mask_] = {
      .flags = 0,
      .region = 0,
      .length = static_cast<std::uint32_t>(length),
      .offset = static_cast<std::uint32_t>(buffer(side, slot) - base_),
      .metadata = 0};
}

std::optional<std::span<std::byte>> Memory::next_buffer() {
  const auto under_way = static_cast<std::uint16_t>(sent_ - load(out_.ring->tail));
  if (under_way > mask_) return std::nullopt;
  return std::span(buffer(out_, sent_), kMaxFrame);
}

void Memory::add(std::size_t length) {
  describe(out_, sent_, length);
  ++sent_;
}

void Memory::publish() {
  store(out_.ring->head, sent_);
}

bool Memory::arrived() const {
  return load(in_.ring->tail) != taken_;
}

std::optional<Memory::Piece> Memory::next_piece() {
  if (!arrived()) return std::nullopt;
  const Descriptor& descriptor = in_.descriptors[taken_ & mask_];
  const std::size_t length = std::min<std::size_t>(descriptor.length, kMaxFrame);
  const Piece piece{.bytes = {buffer(in_, taken_), length},
                    .more = (descriptor.flags & kDescriptorNext) != 0};
  ++taken_;
  return piece;
}

void Memory::release() {
  if (released_ == taken_ && load(in_.ring->head) != 0) return;
  for (; released_ != taken_; ++released_) describe(in_, released_, kMaxFrame);
  store(in_.ring->head, static_cast<std::uint16_t>(released_ + mask_ + 1));
}

// What has arrived before interrupts are wanted causes none: the caller looks again afterwards. An
// exchange, unlike a store, keeps this end's look behind its wish; a fence would do so as well, but
// ThreadSanitizer knows none.
void Memory::want_interrupts(bool wanted) {
  std::atomic_ref(in_.ring->flags)
      .exchange(wanted ? std::uint16_t{0} : kNoInterrupts, std::memory_order_seq_cst);
}

}  // namespace natagg::worker::memif
