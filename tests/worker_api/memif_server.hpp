// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The server's end of a memif link, in the test's own thread and as obedient or hostile as it
// likes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "worker_lib/transport/memif_layout.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::testing {

using Frame = std::vector<std::byte>;

class MemifServer {
 public:
  explicit MemifServer(const std::string& path) {
    listener_ =
        worker::FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
  }
  ~MemifServer() { hang_up(); }
  MemifServer(const MemifServer&) = delete;
  MemifServer& operator=(const MemifServer&) = delete;

  /// Sent in place of the answer to INIT.
  std::string refusal;
  std::uint16_t version = worker::memif::kVersion;
  std::uint8_t max_log2_ring_size = 14;

  /// Accepts, and answers what has come.
  void step() {
    if (control_.get() < 0) {
      control_ = worker::FileDescriptor(
          ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (control_.get() < 0) return;
      Message hello{};
      hello.type = Type::kHello;
      hello.hello = {.name = {},
                     .min_version = version,
                     .max_version = version,
                     .max_region = 1,
                     .max_s2c_ring = 0,
                     .max_c2s_ring = 0,
                     .max_log2_ring_size = max_log2_ring_size};
      say(hello);
    }
    while (answer()) {
    }
  }

  void hang_up() {
    if (base_ != nullptr) ::munmap(base_, size_);
    base_ = nullptr;
    control_ = worker::FileDescriptor();
  }

  [[nodiscard]] bool connected() const { return base_ != nullptr; }
  [[nodiscard]] const worker::memif::Init& init() const { return init_; }
  [[nodiscard]] std::uint16_t ring_size() const {
    return static_cast<std::uint16_t>(1U << in_.log2_size);
  }

  /// The frames that the client has sent.
  std::vector<Frame> take() {
    std::vector<Frame> frames;
    auto* const ring = ring_of(in_);
    for (; ring->tail != std::atomic_ref(ring->head).load(); ++ring->tail) {
      const auto& descriptor = descriptor_of(in_, ring->tail);
      const std::byte* const at = base_ + descriptor.offset;
      frames.emplace_back(at, at + descriptor.length);
    }
    return frames;
  }

  /// One frame in one piece or more. False when the client offers too little room.
  bool put(const std::vector<std::span<const std::byte>>& pieces) {
    auto* const ring = ring_of(out_);
    const auto room = static_cast<std::uint16_t>(std::atomic_ref(ring->head).load() - ring->tail);
    if (room < pieces.size()) return false;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      auto& descriptor = descriptor_of(out_, static_cast<std::uint16_t>(ring->tail + i));
      EXPECT_EQ(descriptor.flags, 0);
      EXPECT_GE(descriptor.length, pieces[i].size());
      std::memcpy(base_ + descriptor.offset, pieces[i].data(), pieces[i].size());
      descriptor.length = static_cast<std::uint32_t>(pieces[i].size());
      descriptor.flags = i + 1 < pieces.size() ? worker::memif::kDescriptorNext : 0;
    }
    show(static_cast<std::uint16_t>(ring->tail + pieces.size()));
    return true;
  }

  /// Says of the next descriptors what it likes, and shows them.
  void lie(std::uint16_t count, std::uint16_t flags, std::uint32_t length, std::uint32_t offset) {
    auto* const ring = ring_of(out_);
    for (std::uint16_t i = 0; i < count; ++i) {
      descriptor_of(out_, static_cast<std::uint16_t>(ring->tail + i)) = {
          .flags = flags, .region = 7, .length = length, .offset = offset, .metadata = 0};
    }
    show(static_cast<std::uint16_t>(ring->tail + count));
  }

  [[nodiscard]] bool client_wants_interrupts() const { return ring_of(out_)->flags == 0; }
  void ring_doorbell() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(doorbell_.get(), &one, sizeof one), 8);
  }

 private:
  using Message = worker::memif::Message;
  using Type = worker::memif::MessageType;
  using AddRing = worker::memif::AddRing;

  void say(const Message& message) {
    EXPECT_EQ(::send(control_.get(), &message, sizeof message, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof message));
  }

  bool answer() {
    Message message{};
    iovec vector{.iov_base = &message, .iov_len = sizeof message};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t size = ::recvmsg(control_.get(), &header, MSG_CMSG_CLOEXEC);
    if (size == 0) hang_up();
    if (size != sizeof message) return false;
    int file = -1;
    if (const cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr) {
      std::memcpy(&file, CMSG_DATA(rights), sizeof file);
    }
    handle(message, worker::FileDescriptor(file));
    return control_.get() >= 0;
  }

  void handle(const Message& message, worker::FileDescriptor file) {
    Message reply{};
    reply.type = Type::kAck;
    switch (message.type) {
      case Type::kInit:
        init_ = message.init;
        if (!refusal.empty()) {
          reply.type = Type::kDisconnect;
          std::memcpy(reply.disconnect.reason.data(), refusal.data(), refusal.size());
        }
        break;
      case Type::kAddRegion:
        size_ = message.add_region.size;
        region_ = std::move(file);
        break;
      case Type::kAddRing:
        if (message.add_ring.flags == worker::memif::kClientToServer) {
          in_ = message.add_ring;
        } else {
          out_ = message.add_ring;
          doorbell_ = std::move(file);
        }
        break;
      case Type::kConnect: connect(reply); break;
      default: ADD_FAILURE() << "message " << static_cast<int>(message.type); return;
    }
    say(reply);
  }

  void connect(Message& reply) {
    void* const base = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, region_.get(), 0);
    ASSERT_NE(base, MAP_FAILED);
    base_ = static_cast<std::byte*>(base);
    for (const AddRing& ring : {in_, out_}) {
      EXPECT_EQ(ring_of(ring)->cookie, worker::memif::kCookie);
      ring_of(ring)->head = ring_of(ring)->tail = 0;
    }
    reply.type = Type::kConnected;
  }

  [[nodiscard]] worker::memif::Ring* ring_of(const AddRing& ring) const {
    return reinterpret_cast<worker::memif::Ring*>(base_ + ring.offset);
  }
  [[nodiscard]] worker::memif::Descriptor& descriptor_of(const AddRing& ring,
                                                         std::uint16_t slot) const {
    auto* const first = reinterpret_cast<worker::memif::Descriptor*>(ring_of(ring) + 1);
    return first[slot & ((1U << ring.log2_size) - 1)];
  }
  void show(std::uint16_t tail) {
    std::atomic_ref(ring_of(out_)->tail).store(tail, std::memory_order_release);
  }

  worker::FileDescriptor listener_;
  worker::FileDescriptor control_;
  worker::FileDescriptor region_;
  worker::FileDescriptor doorbell_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  worker::memif::Init init_{};
  AddRing in_{};
  AddRing out_{};
};

}  // namespace natagg::testing
