// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/bench/observer.hpp"

#include <cerrno>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>

namespace natagg::bench {
namespace {

std::uint64_t read_clock(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) {
    throw std::system_error(errno, std::generic_category(), "clock_gettime");
  }
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// Of "eth0: received bytes, packets and six more, then sent bytes, packets ...".
void read_interface(const std::string& interface, NetworkTotals& totals) {
  std::ifstream file("/proc/thread-self/net/dev");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(interface) >= colon) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::vector<std::uint64_t> all(16);
    for (std::uint64_t& number : all) numbers >> number;
    totals.received_bytes = all[0];
    totals.received_packets = all[1];
    totals.sent_bytes = all[8];
    totals.sent_packets = all[9];
  }
}

/// Of two lines, "Tcp: names" and "Tcp: numbers".
std::uint64_t tcp_retransmissions() {
  std::ifstream file("/proc/thread-self/net/snmp");
  std::string names;
  std::string numbers;
  while (std::getline(file, names) && std::getline(file, numbers)) {
    if (!names.starts_with("Tcp:")) continue;
    std::istringstream name_words(names);
    std::istringstream number_words(numbers);
    std::string name;
    std::string number;
    while (name_words >> name && number_words >> number) {
      if (name == "RetransSegs") return std::stoull(number);
    }
  }
  return 0;
}

}  // namespace

std::uint64_t now_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

std::uint64_t own_cpu_ns() {
  return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

std::uint64_t cpu_ns(pid_t pid) {
  clockid_t clock{};
  const int error = ::clock_getcpuclockid(pid, &clock);
  if (error != 0) {
    throw std::system_error(error, std::generic_category(),
                            "CPU clock of process " + std::to_string(pid));
  }
  return read_clock(clock);
}

NetworkTotals network_totals(const std::string& interface) {
  NetworkTotals totals;
  read_interface(interface, totals);
  totals.tcp_retransmissions = tcp_retransmissions();
  return totals;
}

}  // namespace natagg::bench
