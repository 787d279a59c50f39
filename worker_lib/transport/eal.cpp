// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/transport/eal.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "worker_lib/blocked_signals.hpp"
#include "worker_lib/error.hpp"

namespace natagg::worker {
namespace {

/// What a process has one of.
struct Process {
  std::mutex devices;

  std::mutex starting;
  pid_t started_by = 0;
  std::string failure;  // of the start, which cannot be tried twice

  // EAL keeps pointers into its arguments and orders them anew.
  std::vector<std::string> words;
  std::vector<char*> argv;

  std::mutex logging;
  std::string first_error;  // that DPDK has logged since forget_dpdk_errors()
};

// Not destroyed: DPDK's thread may log until the process is gone.
Process& process() {
  static auto* const instance = new Process;
  return *instance;
}

ssize_t keep_error(void*, const char* text, std::size_t size) {
  if (rte_log_cur_msg_loglevel() <= static_cast<int>(RTE_LOG_ERR)) {
    std::string_view line{text, size};
    line.remove_suffix(line.ends_with('\n') ? 1 : 0);
    const std::lock_guard lock(process().logging);
    if (process().first_error.empty()) process().first_error = line;
  }
  return static_cast<ssize_t>(size);
}

void silence_log() {
  cookie_io_functions_t functions{};
  functions.write = keep_error;
  std::FILE* const stream = ::fopencookie(nullptr, "w", functions);
  if (stream == nullptr) throw_system_error(errno, "fopencookie()", "");
  rte_openlog_stream(stream);
}

int first_cpu() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  int cpu = 0;
  while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed)) ++cpu;
  return cpu;
}

[[noreturn]] void refuse(const std::string& word, const char* why) {
  throw Error(NATAGG_INVALID_ARGUMENT, "eal: " + word + " " + why);
}

/// The arguments that were given, checked for what would end this process or never return.
std::vector<std::string> split(const std::string& arguments) {
  std::vector<std::string> words;
  std::istringstream stream(arguments);
  for (std::string word; stream >> word;) {
    if (word == "-h" || word == "--help") refuse(word, "would end the process");
    if (word.starts_with("--proc-type") && word != "--proc-type=primary") {
      refuse(word, "is not supported: a worker's process is a primary one");
    }
    words.push_back(word);
  }
  return words;
}

std::vector<std::string> make_words(const std::string& arguments) {
  std::vector<std::string> words{"natagg-worker"};
  const std::vector<std::string> given = split(arguments);
  const auto add_unless = [&](std::initializer_list<const char*> spellings,
                              std::initializer_list<std::string> more) {
    const auto is_one = [&](const std::string& word) {
      return std::ranges::any_of(spellings, [&](const char* s) { return word.starts_with(s); });
    };
    if (std::ranges::none_of(given, is_one)) words.insert(words.end(), more);
  };
  add_unless({"-l", "-c", "--lcores"}, {"--lcores", "0@" + std::to_string(first_cpu())});
  add_unless({"--file-prefix"}, {"--file-prefix", "natagg-" + std::to_string(::getpid())});
  // One that no driver wants keeps DPDK from taking all that there are.
  add_unless({"-a", "-b", "--allow", "--block", "--no-pci"}, {"-a", "0000:00:00.0"});
  if (given.empty()) words.insert(words.end(), {"--no-huge", "-m", "256"});
  words.insert(words.end(), {"--no-shconf", "--no-telemetry"});
  words.insert(words.end(), given.begin(), given.end());
  return words;
}

/// In a thread of its own, whose affinity and signals EAL may change.
int init_in_thread(int count, char** argv) {
  int error = 0;
  const auto init = [&] {
    if (rte_eal_init(count, argv) < 0) error = rte_errno != 0 ? rte_errno : EINVAL;
  };
  const BlockedSignals blocked;
  try {
    std::thread(init).join();
  } catch (const std::system_error& thrown) {
    throw_system_error(thrown.code().value(), "pthread_create()", "`ulimit -u` limits threads");
  }
  return error;
}

void start(const std::string& arguments) {
  Process& own = process();
  own.words = make_words(arguments);
  for (std::string& word : own.words) own.argv.push_back(word.data());
  own.argv.push_back(nullptr);
  silence_log();
  const int error = init_in_thread(static_cast<int>(own.words.size()), own.argv.data());
  // With what make_words() adds, nothing is in there.
  ::rmdir(rte_eal_get_runtime_dir());
  if (error == 0) {
    own.started_by = ::getpid();
    return;
  }
  std::string call = "rte_eal_init(";
  for (std::size_t i = 1; i < own.words.size(); ++i) call.append(own.words[i]).append(" ");
  call.back() = ')';
  try {
    throw_dpdk_error(error, call,
                     "without hugepages, the option eal is \"\" or has --no-huge -m 256");
  } catch (const Error& thrown) {
    own.failure = thrown.what();
    throw;
  }
}

}  // namespace

void start_eal(const std::string& arguments) {
  Process& own = process();
  const std::lock_guard lock(own.starting);
  if (!own.failure.empty()) {
    throw Error(NATAGG_SYSTEM_ERROR, own.failure + "; a process starts DPDK once");
  }
  if (own.started_by == ::getpid()) return;
  if (own.started_by != 0) {
    throw Error(NATAGG_WRONG_PROCESS,
                "transport: fork() made this process, and its parent runs DPDK, which has no "
                "threads here");
  }
  if (rte_lcore_count() != 0) return;  // the application has started it
  start(arguments);
}

std::unique_lock<std::mutex> lock_devices() {
  return std::unique_lock(process().devices);
}

void forget_dpdk_errors() {
  const std::lock_guard lock(process().logging);
  process().first_error.clear();
}

void throw_dpdk_error(int code, const std::string& call, std::string_view remedy) {
  std::string more;
  {
    const std::lock_guard lock(process().logging);
    if (!process().first_error.empty()) more = "DPDK: " + process().first_error;
  }
  if (!remedy.empty()) more.append(more.empty() ? "" : "; ").append(remedy);
  // What drivers say when they have no number.
  if (code == -1) throw Error(NATAGG_SYSTEM_ERROR, call + " failed; " + more);
  throw_system_error(std::abs(code), call, more);
}

}  // namespace natagg::worker
