// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/batch.hpp"

#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "proto/net/headers.hpp"
#include "worker_lib/core/segment_run.hpp"

namespace natagg::worker {
namespace {

struct Notes {
  bool marked = false;       // "congestion experienced", by a switch
  std::size_t datagram = 0;  // bytes of each but the last, 0: there is one
};

template <typename T>
T read_control(const cmsghdr* control) {
  T value{};
  std::memcpy(&value, CMSG_DATA(control), sizeof value);
  return value;
}

Notes read_notes(msghdr& message) {
  Notes notes;
  for (const cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, const_cast<cmsghdr*>(control))) {
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) {
      const auto service = read_control<std::uint8_t>(control);
      notes.marked = (service & net::kEcnMask) == net::kEcnExperienced;
    }
    if (control->cmsg_level == SOL_UDP && control->cmsg_type == UDP_GRO) {
      notes.datagram = static_cast<std::size_t>(std::max(read_control<int>(control), 0));
    }
  }
  return notes;
}

}  // namespace

ReceiveBatch::ReceiveBatch(Merging merging)
    : buffer_bytes_(merging == Merging::kOn ? kMergedBytes : kDatagramBytes),
      buffers_(kBatch * buffer_bytes_) {
  incoming_.reserve(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) {
    vectors_[i] = {.iov_base = buffers_.data() + i * buffer_bytes_, .iov_len = buffer_bytes_};
    messages_[i].msg_hdr.msg_iov = &vectors_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_name = &sources_[i];
    messages_[i].msg_hdr.msg_control = controls_[i].data();
  }
}

std::span<const Incoming> ReceiveBatch::receive(int socket) {
  for (mmsghdr& message : std::span(messages_).first(packets_)) {
    message.msg_hdr.msg_namelen = sizeof(sockaddr_in);
    message.msg_hdr.msg_controllen = kControlBytes;
  }
  int received = 0;
  do {
    received = ::recvmmsg(socket, messages_.data(), packets_, MSG_DONTWAIT, nullptr);
  } while (received < 0 && errno == EINTR);
  drained_ = received < static_cast<int>(packets_);
  incoming_.clear();
  if (received <= 0) return {};
  const std::size_t count = static_cast<std::size_t>(received);
  for (std::size_t i = 0; i < count; ++i) take(i);
  packets_ = incoming_.size() > count ? kMergedBatch : kBatch;
  return incoming_;
}

std::span<const std::byte> ReceiveBatch::received(std::size_t message) const {
  // A packet longer than its buffer, which no natagg packet is, arrives cut off; the stream judges
  // what is left.
  return {buffers_.data() + message * buffer_bytes_, messages_[message].msg_len};
}

void ReceiveBatch::take(std::size_t message) {
  const Notes notes = read_notes(messages_[message].msg_hdr);
  Incoming incoming{
      .datagram = {}, .source = to_endpoint(sources_[message]), .congested = notes.marked};
  std::span<const std::byte> rest = received(message);
  if (notes.datagram == 0 || rest.size() <= notes.datagram) {
    incoming.datagram = rest;
    incoming_.push_back(incoming);
    return;
  }
  while (!rest.empty()) {
    incoming.datagram = rest.first(std::min(rest.size(), notes.datagram));
    rest = rest.subspan(incoming.datagram.size());
    incoming_.push_back(incoming);
    ++merged_;
  }
}

SendBatch::SendBatch() {
  for (std::size_t i = 0; i < kBatch; ++i) {
    messages_[i].msg_hdr.msg_name = &destinations_[i];
    messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in);
  }
}

std::span<mmsghdr> SendBatch::prepare(std::span<const Outgoing> datagrams, bool segment) {
  std::size_t done = 0;
  std::size_t count = 0;
  while (done < datagrams.size()) {
    const std::size_t run = segment ? segment_run(datagrams.subspan(done)) : 1;
    const Outgoing& first = datagrams[done];
    msghdr& message = messages_[count].msg_hdr;
    message.msg_iov = &vectors_[done];
    message.msg_iovlen = run;
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    destinations_[count] = to_sockaddr(first.to);
    if (run > 1) {
      message.msg_control = controls_[count].data();
      message.msg_controllen = controls_[count].size();
      cmsghdr* control = CMSG_FIRSTHDR(&message);
      control->cmsg_level = SOL_UDP;
      control->cmsg_type = UDP_SEGMENT;
      control->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
      const auto length = static_cast<std::uint16_t>(first.datagram.size());
      std::memcpy(CMSG_DATA(control), &length, sizeof length);
    }
    for (const Outgoing& datagram : datagrams.subspan(done, run)) {
      // The socket interface has one iovec for both ways; sending does not write through it.
      vectors_[done++] = {.iov_base = const_cast<std::byte*>(datagram.datagram.data()),
                          .iov_len = datagram.datagram.size()};
    }
    ++count;
  }
  return {messages_.data(), count};
}

}  // namespace natagg::worker
