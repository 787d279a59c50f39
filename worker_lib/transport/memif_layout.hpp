// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// memif, version 2.0, as FD.io's VPP and DPDK's net_memif speak it: an Ethernet link through memory
// that two processes of one host share. The client makes the memory, with a ring of descriptors for
// each direction, and tells the server of it over a Unix socket. Numbers have the host's byte
// order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace natagg::worker::memif {

inline constexpr std::uint16_t kVersion = 2 << 8;

// --- Messages on the socket, each one packet of SOCK_SEQPACKET ---

enum class MessageType : std::uint16_t {
  kNone = 0,
  kAck = 1,
  kHello = 2,       // server: what it can do
  kInit = 3,        // client: which interface it wants; acknowledged, like all of the client's
  kAddRegion = 4,   // with the file descriptor of a stretch of memory
  kAddRing = 5,     // with the eventfd that wakes the ring's receiver
  kConnect = 6,     // client: has said all
  kConnected = 7,   // server: the link is up
  kDisconnect = 8,  // either: why not
};

#pragma pack(push, 1)
struct Hello {
  std::array<char, 32> name;
  std::uint16_t min_version;
  std::uint16_t max_version;
  std::uint16_t max_region;
  std::uint16_t max_s2c_ring;
  std::uint16_t max_c2s_ring;
  std::uint8_t max_log2_ring_size;
};

struct Init {
  std::uint16_t version;
  std::uint32_t id;
  std::uint8_t mode;  // 0: Ethernet
  std::array<char, 24> secret;
  std::array<char, 32> name;
};

struct AddRegion {
  std::uint16_t index;
  std::uint64_t size;
};

inline constexpr std::uint16_t kClientToServer = 1;

struct AddRing {
  std::uint16_t flags;  // kClientToServer, or 0
  std::uint16_t index;
  std::uint16_t region;
  std::uint32_t offset;
  std::uint8_t log2_size;
  std::uint16_t private_header_size;
};

struct Connect {
  std::array<char, 32> interface_name;
};

struct Disconnect {
  std::uint32_t code;
  std::array<char, 96> reason;
};

struct Message {
  MessageType type;
  union {
    Hello hello;
    Init init;
    AddRegion add_region;
    AddRing add_ring;
    Connect connect;
    Disconnect disconnect;
    std::array<std::byte, 126> bytes;
  };
};
#pragma pack(pop)
static_assert(sizeof(Hello) == 43 && sizeof(Init) == 63 && sizeof(AddRegion) == 10);
static_assert(sizeof(AddRing) == 13 && sizeof(Disconnect) == 100 && sizeof(Message) == 128);

// --- Memory ---

inline constexpr std::uint16_t kDescriptorNext = 1;  // the frame goes on in the next descriptor

struct Descriptor {
  std::uint16_t flags;
  std::uint16_t region;
  std::uint32_t length;
  std::uint32_t offset;  // in the region
  std::uint32_t metadata;
};
static_assert(sizeof(Descriptor) == 16);

inline constexpr std::uint32_t kCookie = 0x3E31F20;
inline constexpr std::uint16_t kNoInterrupts = 1;  // the receiver polls

/// Descriptors stand behind it. From client to server, the client fills descriptors up to `head`
/// and the server frees them up to `tail`. The other way round, the client offers empty ones up to
/// `head`, and the server fills them up to `tail`. Both numbers run freely.
struct alignas(64) Ring {
  std::uint32_t cookie;
  std::uint16_t flags;
  std::uint16_t head;
  alignas(64) std::uint16_t tail;
};
static_assert(sizeof(Ring) == 128 && offsetof(Ring, head) == 6 && offsetof(Ring, tail) == 64);

}  // namespace natagg::worker::memif
