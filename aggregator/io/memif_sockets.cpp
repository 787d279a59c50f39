// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/memif_sockets.hpp"

#include <poll.h>
#include <rte_kvargs.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>

namespace natagg::aggregator::io {
namespace {

constexpr std::string_view kDriver = "net_memif";

/// Of "net_memif0,role=server,socket=PATH,socket-abstract=no"; empty where there is none.
std::string server_socket(const std::string& device) {
  const std::size_t comma = device.find(',');
  if (!device.starts_with(kDriver) || comma == std::string::npos) return {};
  const std::unique_ptr<rte_kvargs, decltype(&rte_kvargs_free)> values(
      rte_kvargs_parse(device.c_str() + comma + 1, nullptr), &rte_kvargs_free);
  if (!values) return {};
  const auto value = [&](const char* key) -> std::string_view {
    const char* text = rte_kvargs_get(values.get(), key);
    return text == nullptr ? "" : text;
  };
  const bool serves = value("role") == "server" || value("role") == "master";
  return serves && value("socket-abstract") == "no" ? std::string(value("socket")) : std::string();
}

/// Of a path with a listener in this network namespace, without disturbing it.
bool is_listed(const std::string& path) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.ends_with(" " + path)) return true;
  }
  return false;
}

/// DPDK 22.11 panics when a peer is gone before it has been greeted (memif_listener_handler closes
/// a socket that EAL's interrupt thread still has).
void await_greeting(int socket) {
  constexpr int kPatienceMs = 1'000;
  pollfd greeted{.fd = socket, .events = POLLIN, .revents = 0};
  ::poll(&greeted, 1, kPatienceMs);
}

}  // namespace

std::vector<std::string> memif_server_sockets(const std::vector<std::string>& arguments) {
  constexpr std::string_view kOption = "--vdev";
  std::vector<std::string> sockets;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string device;
    if (arguments[i] == kOption && i + 1 < arguments.size()) {
      device = arguments[i + 1];
    } else if (arguments[i].starts_with(std::string(kOption) + "=")) {
      device = arguments[i].substr(kOption.size() + 1);
    }
    std::string socket = server_socket(device);
    if (socket.empty() || std::ranges::find(sockets, socket) != sockets.end()) continue;
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

bool remove_stale_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path || is_listed(path)) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return false;
  const int connected =
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool stale = connected != 0 && errno == ECONNREFUSED;
  if (connected == 0) await_greeting(socket);
  ::close(socket);
  return stale && ::unlink(path.c_str()) == 0;
}

}  // namespace natagg::aggregator::io
