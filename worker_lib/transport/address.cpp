// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>

#include "proto/packet.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/transport/socket.hpp"

namespace natagg::worker {
namespace {

std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  in_addr address{};
  if (::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, port);
  if (code != std::errc{} || stop != end || port == 0) return std::nullopt;
  return port;
}

[[noreturn]] void refuse(std::string_view part, std::string_view why) {
  throw Error(NATAGG_INVALID_ARGUMENT,
              "aggregators: \"" + std::string(part) + "\" " + std::string(why));
}

proto::Endpoint parse_endpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::optional<std::uint32_t> address = parse_ipv4(text.substr(0, colon));
  if (!address) refuse(text, "is not a numeric IPv4 address[:port], such as 10.0.0.1:4790");
  if (*address == 0) refuse(text, "is no aggregator's address");
  proto::Endpoint endpoint{.address = *address, .port = proto::kDefaultPort};
  if (colon != std::string_view::npos) {
    const std::optional<std::uint16_t> port = parse_port(text.substr(colon + 1));
    if (!port) refuse(text, "has no port from 1 to 65535 after the colon");
    endpoint.port = *port;
  }
  return endpoint;
}

/// Index of the interface that has `address`.
int interface_of(std::uint32_t address) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw_system_error(errno, "getifaddrs()", "");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    __builtin_memcpy(&own, entry->ifa_addr, sizeof own);
    if (ntohl(own.sin_addr.s_addr) == address) {
      return static_cast<int>(::if_nametoindex(entry->ifa_name));
    }
  }
  return 0;  // such as any address of 127.0.0.0/8: the kernel then chooses
}

}  // namespace

std::vector<proto::Endpoint> parse_aggregators(std::string_view text) {
  std::vector<proto::Endpoint> endpoints;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const proto::Endpoint endpoint = parse_endpoint(part);
    for (const proto::Endpoint& earlier : endpoints) {
      if (earlier == endpoint) refuse(part, "stands twice in the list");
    }
    endpoints.push_back(endpoint);
    begin = end + 1;
  }
  return endpoints;
}

Local parse_local(std::string_view text) {
  if (text.empty()) return {};
  if (const auto address = parse_ipv4(text)) return {.address = *address, .interface = {}};
  if (text.size() >= IFNAMSIZ) {
    throw Error(NATAGG_INVALID_ARGUMENT, "local: \"" + std::string(text) +
                                             "\" is neither a numeric IPv4 address nor the name "
                                             "of an interface");
  }
  return {.address = 0, .interface = std::string(text)};
}

void bind_local(int socket, const Local& local) {
  if (!local.interface.empty() &&
      ::setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, local.interface.data(),
                   static_cast<socklen_t>(local.interface.size())) != 0) {
    throw_system_error(errno, "setsockopt(SO_BINDTODEVICE, " + local.interface + ")",
                       "`ip link` lists this host's interfaces");
  }
  const sockaddr_in address = to_sockaddr({.address = local.address, .port = 0});
  if (::bind(socket, generic(&address), sizeof address) != 0) {
    throw_system_error(errno, "bind(" + proto::to_string(to_endpoint(address)) + ")",
                       "`ip address` lists this host's addresses");
  }
}

Route find_route(const proto::Endpoint& destination, const Local& local) {
  // Connecting a UDP socket looks up the route and sends nothing.
  const FileDescriptor probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (probe.get() < 0) throw_system_error(errno, "socket(AF_INET, SOCK_DGRAM)", "");
  bind_local(probe.get(), local);
  const std::string name = proto::to_string(destination);
  const sockaddr_in remote = to_sockaddr(destination);
  if (::connect(probe.get(), generic(&remote), sizeof remote) != 0) {
    throw_system_error(errno, "connect(" + name + ")",
                       "`ip route get` with this address shows this host's way to it");
  }
  int mtu = 0;
  socklen_t size = sizeof mtu;
  if (::getsockopt(probe.get(), IPPROTO_IP, IP_MTU, &mtu, &size) != 0) {
    throw_system_error(errno, "getsockopt(IP_MTU) towards " + name, "");
  }
  sockaddr_in own{};
  size = sizeof own;
  if (::getsockname(probe.get(), generic(&own), &size) != 0) {
    throw_system_error(errno, "getsockname() towards " + name, "");
  }
  return {.interface_index = interface_of(to_endpoint(own).address),
          .mtu = static_cast<std::size_t>(mtu),
          .source = to_endpoint(own).address};
}

}  // namespace natagg::worker
