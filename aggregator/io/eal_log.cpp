// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/eal_log.hpp"

#include <rte_log.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <string_view>

namespace natagg::aggregator::io {
namespace {

std::FILE* g_stream = nullptr;

spdlog::level::level_enum to_spdlog(int level) {
  if (level <= static_cast<int>(RTE_LOG_ERR)) return spdlog::level::err;
  if (level == static_cast<int>(RTE_LOG_WARNING)) return spdlog::level::warn;
  if (level <= static_cast<int>(RTE_LOG_INFO)) return spdlog::level::info;
  return spdlog::level::debug;
}

// DPDK flushes after each message, so one call is one message, of one or more lines.
ssize_t write_message(void*, const char* text, std::size_t size) {
  std::string_view rest{text, size};
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (!line.empty()) spdlog::log(to_spdlog(rte_log_cur_msg_loglevel()), "dpdk: {}", line);
    rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : line.size());
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

void route_dpdk_log() {
  cookie_io_functions_t functions{};
  functions.write = write_message;
  g_stream = fopencookie(nullptr, "w", functions);
  if (g_stream != nullptr) rte_openlog_stream(g_stream);
}

void restore_dpdk_log() {
  rte_openlog_stream(nullptr);
  if (g_stream != nullptr) std::fclose(g_stream);
  g_stream = nullptr;
}

}  // namespace natagg::aggregator::io
