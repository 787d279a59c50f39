// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/batch.hpp"

#include <cerrno>
#include <cstring>

#include "proto/net/headers.hpp"

namespace natagg::worker {
namespace {

/// Whether a switch has marked the packet "congestion experienced".
bool is_marked(const msghdr& message) {
  const cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (control == nullptr || control->cmsg_level != IPPROTO_IP || control->cmsg_type != IP_TOS) {
    return false;
  }
  std::uint8_t service = 0;
  std::memcpy(&service, CMSG_DATA(control), sizeof(service));
  return (service & net::kEcnMask) == net::kEcnExperienced;
}

}  // namespace

ReceiveBatch::ReceiveBatch() : buffers_(kBatch * kBufferBytes) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    vectors_[i] = {.iov_base = &buffers_[i * kBufferBytes], .iov_len = kBufferBytes};
    messages_[i].msg_hdr.msg_iov = &vectors_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_name = &sources_[i];
    messages_[i].msg_hdr.msg_control = controls_[i].data();
  }
}

std::span<const Incoming> ReceiveBatch::receive(int socket) {
  for (mmsghdr& message : messages_) {
    message.msg_hdr.msg_namelen = sizeof(sockaddr_in);
    message.msg_hdr.msg_controllen = kControlBytes;
  }
  int received = 0;
  do {
    received = ::recvmmsg(socket, messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
  } while (received < 0 && errno == EINTR);
  if (received <= 0) return {};
  const std::size_t count = static_cast<std::size_t>(received);
  for (std::size_t i = 0; i < count; ++i) {
    // A datagram longer than its buffer, which no natagg packet is, arrives cut off; the stream
    // judges what is left.
    incoming_[i] = {.datagram = {&buffers_[i * kBufferBytes], messages_[i].msg_len},
                    .source = to_endpoint(sources_[i]),
                    .congested = is_marked(messages_[i].msg_hdr)};
  }
  return {incoming_.data(), count};
}

SendBatch::SendBatch() {
  for (std::size_t i = 0; i < kBatch; ++i) {
    messages_[i].msg_hdr.msg_iov = &vectors_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_name = &destinations_[i];
    messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in);
  }
}

std::span<mmsghdr> SendBatch::prepare(std::span<const Outgoing> datagrams) {
  for (std::size_t i = 0; i < datagrams.size(); ++i) {
    // The socket interface has one iovec for both ways; sending does not write through it.
    vectors_[i] = {.iov_base = const_cast<std::byte*>(datagrams[i].datagram.data()),
                   .iov_len = datagrams[i].datagram.size()};
    destinations_[i] = to_sockaddr(datagrams[i].to);
  }
  return {messages_.data(), datagrams.size()};
}

}  // namespace natagg::worker
