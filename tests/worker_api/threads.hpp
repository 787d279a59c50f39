// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the kernel says about the threads of this process, for tests that want one to be waiting.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace natagg::testing {

/// The numbers of this process's threads that are called `name`.
inline std::vector<pid_t> threads_called(std::string_view name) {
  std::vector<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string text;
    std::getline(std::ifstream(task.path() / "comm"), text);
    if (text == name) found.push_back(std::stoi(task.path().filename()));
  }
  return found;
}

/// The rest of the line of /proc/self/task/`thread`/status that begins with `field` and a colon.
inline std::string thread_status(pid_t thread, std::string_view field) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/status");
  const std::string label = std::string(field) + ":\t";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(label)) return line.substr(label.size());
  }
  return {};
}

/// Waits until `thread` sleeps in a system call; false when it does not within 10 seconds.
inline bool await_sleep(pid_t thread) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    if (thread_status(thread, "State").starts_with('S')) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace natagg::testing
