// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/eal.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <stdexcept>

#include "aggregator/io/eal_log.hpp"
#include "aggregator/io/memif_sockets.hpp"

namespace natagg::aggregator::io {
namespace {

// EAL's hook takes no context.
void (*g_print_usage)() = nullptr;

void usage_hook(const char*) {
  if (g_print_usage != nullptr) g_print_usage();
}

}  // namespace

Eal::Eal(const std::string& program, const std::vector<std::string>& arguments,
         void (*print_usage)()) {
  // EAL itself would wait for a primary process without end.
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--proc-type") || argument == "--proc-type=primary") continue;
    throw std::runtime_error(
        "the aggregator runs as a primary process only: leave out --proc-type, and give each "
        "daemon of this host a --file-prefix of its own");
  }
  for (const std::string& socket : memif_server_sockets(arguments)) {
    if (remove_stale_socket(socket)) {
      spdlog::info("{}: removed, a daemon that was killed left it", socket);
    }
  }
  words_.push_back(program);
  words_.insert(words_.end(), arguments.begin(), arguments.end());
  for (std::string& word : words_) argv_.push_back(word.data());
  argv_.push_back(nullptr);

  g_print_usage = print_usage;
  rte_set_application_usage_hook(usage_hook);
  route_dpdk_log();
  const int count = static_cast<int>(words_.size());
  const int taken = rte_eal_init(count, argv_.data());
  if (taken < 0) {
    throw std::runtime_error(
        describe_failure("rte_eal_init", fmt::format("{}", fmt::join(arguments, " "))) +
        "; see the lines above. Without hugepages, pass --no-huge -m 256");
  }
  if (taken + 1 < count) {
    const std::string left = argv_[static_cast<std::size_t>(taken) + 1];
    rte_eal_cleanup();
    throw std::runtime_error("EAL argument not understood: " + left);
  }
}

Eal::~Eal() {
  if (!keeps_memory_) rte_eal_cleanup();
  restore_dpdk_log();
}

unsigned Eal::lcores() const {
  return rte_lcore_count();
}

std::string describe_failure(const std::string& call, const std::string& object, int error) {
  const int number = error == 0 ? rte_errno : std::abs(error);
  return fmt::format("{} of {}: {} ({})", call, object, rte_strerror(number), number);
}

}  // namespace natagg::aggregator::io
