// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/memif_link.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "worker_lib/error.hpp"

namespace natagg::worker::memif {
namespace {

constexpr Time kBetweenAttempts = 50'000'000;

template <std::size_t Size>
void copy_text(std::string_view text, std::array<char, Size>& out) {
  std::memcpy(out.data(), text.data(), std::min(text.size(), Size - 1));
}

FileDescriptor make_doorbell() {
  FileDescriptor doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (doorbell.get() < 0) throw_system_error(errno, "eventfd()", "`ulimit -n` limits open files");
  return doorbell;
}

/// The nearest errno to what a server says when it ends a connection.
int problem_of(const Disconnect& disconnect) {
  const std::string_view reason{disconnect.reason.data(),
                                ::strnlen(disconnect.reason.data(), disconnect.reason.size())};
  if (reason.starts_with("Already connected")) return EBUSY;
  if (reason.starts_with("ID not found")) return ENODEV;
  if (reason.find("ecret") != std::string_view::npos) return EACCES;
  return ECONNRESET;
}

}  // namespace

Link::Link(Address address) : address_(std::move(address)) {
  if (address_.path.size() >= sizeof(sockaddr_un::sun_path)) {
    throw Error(NATAGG_INVALID_ARGUMENT, "transport: the path \"" + address_.path +
                                             "\" is longer than a socket's path may be");
  }
}

/// A server on DPDK 22.11 panics when a client is gone before it has been greeted.
Link::~Link() {
  constexpr int kPatienceMs = 200;
  if (control_.get() < 0 || said_ != 0) return;
  pollfd greeted{.fd = control_.get(), .events = POLLIN, .revents = 0};
  ::poll(&greeted, 1, kPatienceMs);
}

void Link::advance(Time now) {
  if (control_.get() < 0) {
    if (now < next_attempt_) return;
    next_attempt_ = now + kBetweenAttempts;
    connect();
  }
  if (control_.get() >= 0) receive();
}

void Link::connect() {
  control_ = FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (control_.get() < 0) throw_system_error(errno, "socket(AF_UNIX)", "");
  sockaddr_un server{};
  server.sun_family = AF_UNIX;
  std::memcpy(server.sun_path, address_.path.data(), address_.path.size());
  if (::connect(control_.get(), reinterpret_cast<const sockaddr*>(&server), sizeof server) != 0) {
    disconnect(errno);
  }
}

void Link::disconnect(int problem) {
  control_ = FileDescriptor();
  up_ = false;
  problem_ = problem;
  said_ = 0;
}

void Link::receive() {
  for (;;) {
    Message message{};
    const ssize_t size = ::recv(control_.get(), &message, sizeof message, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size != sizeof message) return disconnect(size < 0 ? errno : ECONNRESET);
    handle(message);
    if (control_.get() < 0) return;
  }
}

void Link::handle(const Message& message) {
  switch (message.type) {
    case MessageType::kHello: return handle_hello(message.hello);
    case MessageType::kAck: return say_next();
    case MessageType::kConnected:
      memory_->release();  // the server has set all numbers to 0
      up_ = true;
      problem_ = 0;
      ++connections_;
      return;
    case MessageType::kDisconnect: return disconnect(problem_of(message.disconnect));
    default: return disconnect(EPROTO);
  }
}

void Link::handle_hello(const Hello& hello) {
  if (hello.min_version > kVersion || hello.max_version < kVersion) {
    return disconnect(EPROTONOSUPPORT);
  }
  // A server that died may still have the old memory, and one that lives may still write there.
  memory_ = std::make_unique<Memory>(std::min(kLog2Frames, hello.max_log2_ring_size));
  doorbell_ = make_doorbell();
  their_doorbell_ = make_doorbell();
  say_next();
}

/// One message at a time; the server acknowledges all but the last.
void Link::say_next() {
  Message message{};
  switch (said_++) {
    case 0:
      message.type = MessageType::kInit;
      message.init = {.version = kVersion, .id = address_.id, .mode = 0, .secret = {}, .name = {}};
      copy_text("natagg", message.init.name);
      return send(message, -1);
    case 1:
      message.type = MessageType::kAddRegion;
      message.add_region = {.index = 0, .size = memory_->bytes()};
      return send(message, memory_->file());
    case 2: return send_ring(true, their_doorbell_.get());
    case 3: return send_ring(false, doorbell_.get());
    case 4:
      message.type = MessageType::kConnect;
      copy_text("natagg", message.connect.interface_name);
      return send(message, -1);
    default: return disconnect(EPROTO);
  }
}

void Link::send_ring(bool client_to_server, int doorbell) {
  Message message{};
  message.type = MessageType::kAddRing;
  message.add_ring = {.flags = client_to_server ? kClientToServer : std::uint16_t{0},
                      .index = 0,
                      .region = 0,
                      .offset = memory_->offset_of_ring(client_to_server),
                      .log2_size = memory_->log2_size(),
                      .private_header_size = 0};
  send(message, doorbell);
}

void Link::send(const Message& message, int file) {
  iovec vector{.iov_base = const_cast<Message*>(&message), .iov_len = sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  if (file >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(rights), &file, sizeof file);
  }
  if (::sendmsg(control_.get(), &header, MSG_NOSIGNAL) != sizeof message) disconnect(errno);
}

}  // namespace natagg::worker::memif
