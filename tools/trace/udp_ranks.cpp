// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/udp_ranks.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "tools/trace/ticks.hpp"

namespace natagg::tools {
namespace {

using proto::Type;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kRepeat = 50 * kMillisecond;       // HELLO, JOIN
constexpr std::int64_t kPatience = 5'000 * kMillisecond;  // for an answer to them
constexpr std::int64_t kHeartbeat = 300 * kMillisecond;
constexpr int kLeaves = 4;
constexpr std::int64_t kLeaveInterval = 20 * kMillisecond;
constexpr int kReceiveBuffer = 4 << 20;
constexpr std::size_t kLargestDatagram = 65'536;
constexpr int kSendAttempts = 1000;

[[noreturn]] void fail(const std::string& call, const proto::Endpoint& to) {
  throw std::system_error(errno, std::generic_category(), call + " for " + proto::to_string(to));
}

/// Whether an ICMP message came in place of a datagram; the port may open yet.
bool passes(int error) {
  return error == ECONNREFUSED || error == EAGAIN || error == EINTR;
}

/// Reasons that pass when the jobs of an earlier replay are gone.
bool may_pass(proto::RefuseReason reason) {
  using enum proto::RefuseReason;
  return reason == kRankTaken || reason == kJobRunning || reason == kTooManyJobs ||
         reason == kNoMemory;
}

}  // namespace

UdpRanks::UdpRanks(const TraceSurvey& survey, const UdpTarget& target)
    : survey_(survey),
      target_(target),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      next_instance_(std::uint64_t{std::random_device{}()} << 32 | 1),
      sockets_(survey.sessions().size()),
      buffer_(kLargestDatagram) {
  if (poll_.get() < 0) fail("epoll_create1", target_.aggregator);
  ask_for_shards();
}

worker::FileDescriptor UdpRanks::open(const proto::Endpoint& to) const {
  worker::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0) fail("socket", to);
  const int discover = IP_PMTUDISC_DO;
  ::setsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
  // As much as the kernel grants: --in-flight is for the rest.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer));
  const sockaddr_in address = worker::to_sockaddr(to);
  if (::connect(socket.get(), worker::generic(&address), sizeof(address)) != 0) fail("connect", to);
  return socket;
}

void UdpRanks::ask_for_shards() {
  const worker::FileDescriptor socket = open(target_.aggregator);
  std::size_t values = 0;
  std::uint16_t window = 0;
  for (const TraceSession& session : survey_.sessions()) {
    values = std::max<std::size_t>(values, session.values());
    window = std::max(window, session.window());
  }
  std::vector<std::byte> hello(proto::datagram_size(values));
  proto::Header header = proto::make_header(Type::kHello);
  header.job = proto::Be32{target_.first_job};
  const proto::HelloBody body{.instance = proto::Be64{next_instance_}};
  std::memcpy(hello.data(), &header, sizeof(header));
  std::memcpy(hello.data() + sizeof(header), &body, sizeof(body));

  const std::string who = "the aggregator at " + proto::to_string(target_.aggregator);
  const std::int64_t deadline = monotonic_ns() + kPatience;
  std::int64_t next = 0;
  while (monotonic_ns() < deadline) {
    if (monotonic_ns() >= next) {
      if (::send(socket.get(), hello.data(), hello.size(), 0) < 0 && !passes(errno)) {
        fail("send of " + std::to_string(hello.size()) + " bytes", target_.aggregator);
      }
      next = monotonic_ns() + kRepeat;
    }
    const ssize_t size = ::recv(socket.get(), buffer_.data(), buffer_.size(), 0);
    const std::span<const std::byte> datagram(buffer_.data(),
                                              size > 0 ? static_cast<std::size_t>(size) : 0);
    if (proto::validate(datagram) != proto::Reject::kNone ||
        proto::read_header(datagram).type != Type::kOffer) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    const auto offer = proto::read_body<proto::OfferBody>(datagram);
    shards_ = std::max<std::uint16_t>(offer.shards.value(), 1);
    if (offer.max_values.value() < values || offer.max_window.value() < window) {
      throw TraceError(who + " takes " + std::to_string(offer.max_values.value()) +
                       " values a packet and a window of " +
                       std::to_string(offer.max_window.value()) + ", the trace has " +
                       std::to_string(values) + " and " + std::to_string(window));
    }
    return;
  }
  throw TraceError(who + " does not answer HELLO of " + std::to_string(hello.size()) + " bytes");
}

proto::Endpoint UdpRanks::live_shard(const TraceSession& session) const {
  const std::size_t index = survey_.shard_index(session.shard()) % shards_;
  return {target_.aggregator.address, static_cast<std::uint16_t>(target_.aggregator.port + index)};
}

void UdpRanks::form(std::size_t index, std::uint32_t job, ReplayLedger& ledger,
                    const OnDatagram& others) {
  const TraceSession& session = survey_.sessions()[index];
  const proto::Endpoint shard = live_shard(session);
  std::vector<worker::FileDescriptor>& sockets = sockets_[index];
  std::vector<std::vector<std::byte>> joins;
  for (std::uint16_t rank = 0; rank < session.world(); ++rank) {
    sockets.push_back(open(shard));
    epoll_event event{.events = EPOLLIN, .data = {.fd = sockets.back().get()}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, event.data.fd, &event) != 0) {
      fail("epoll_ctl", shard);
    }
    joins.push_back(ledger.join(index, rank, job, next_instance_++));
  }
  std::string refusal = "it does not become ready";
  bool final = false;
  const OnDatagram on_datagram = [&](std::span<const std::byte> datagram) {
    if (proto::validate(datagram) != proto::Reject::kNone) return others(datagram);
    const proto::Header header = proto::read_header(datagram);
    if (header.job.value() != job) return others(datagram);
    if (header.type == Type::kRefuse) {
      const auto reason = proto::read_body<proto::RefuseBody>(datagram).reason;
      refusal = to_string(reason);
      final = !may_pass(reason);
    } else if (header.type == Type::kWelcome) {
      const auto body = proto::read_body<proto::WelcomeBody>(datagram);
      if (body.state != proto::SessionState::kReady) return;
      ledger.set_live(index, {.job = job,
                              .epoch = header.epoch.value(),
                              .first_sequence = body.first_sequence.value()});
    }
  };
  const std::int64_t deadline = monotonic_ns() + kPatience;
  for (std::int64_t next = 0; !ledger.live(index) && !final && monotonic_ns() < deadline;) {
    if (monotonic_ns() >= next) {
      for (std::uint16_t rank = 0; rank < session.world(); ++rank) send(index, rank, joins[rank]);
      next = monotonic_ns() + kRepeat;
    }
    receive(kMillisecond, on_datagram);
  }
  if (ledger.live(index)) return;
  throw TraceError(session.describe() + " cannot be formed at " + proto::to_string(shard) + ": " +
                   refusal);
}

void UdpRanks::send(std::size_t session, std::uint16_t rank, std::span<const std::byte> datagram) {
  const int socket = sockets_[session][rank].get();
  for (int attempt = 0; attempt < kSendAttempts; ++attempt) {
    if (::send(socket, datagram.data(), datagram.size(), 0) >= 0) return;
    if (errno == ENOBUFS) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else if (!passes(errno)) {
      fail("send", target_.aggregator);
    }
  }
}

void UdpRanks::receive(std::int64_t nanoseconds, const OnDatagram& on_datagram) {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(nanoseconds / kMillisecond));
  for (int i = 0; i < count; ++i) {
    const int socket = events[static_cast<std::size_t>(i)].data.fd;
    for (;;) {
      const ssize_t size = ::recv(socket, buffer_.data(), buffer_.size(), 0);
      if (size < 0) break;
      on_datagram({buffer_.data(), static_cast<std::size_t>(size)});
    }
  }
}

void UdpRanks::heartbeat(const ReplayLedger& ledger) {
  if (monotonic_ns() - last_heartbeat_ < kHeartbeat) return;
  last_heartbeat_ = monotonic_ns();
  for (std::size_t session = 0; session < sockets_.size(); ++session) {
    if (!ledger.live(session)) continue;
    for (std::uint16_t rank = 0; rank < sockets_[session].size(); ++rank) {
      send(session, rank, ledger.control(session, rank, Type::kHeartbeat));
    }
  }
}

void UdpRanks::leave(const ReplayLedger& ledger) {
  // Repeated rather than waited for: what is lost all the same, the member time-out ends.
  for (int i = 0; i < kLeaves; ++i) {
    for (std::size_t session = 0; session < sockets_.size(); ++session) {
      if (!ledger.live(session)) continue;
      for (std::uint16_t rank = 0; rank < sockets_[session].size(); ++rank) {
        send(session, rank, ledger.control(session, rank, Type::kLeave));
      }
    }
    receive(kLeaveInterval, [](std::span<const std::byte>) {});
  }
  for (auto& sockets : sockets_) sockets.clear();
}

}  // namespace natagg::tools
