// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Runs the real daemon, and other programs, as child processes, for tests.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace natagg::testing {

inline constexpr std::chrono::seconds kPatience{60};  // for what takes one on an idle machine

/// A directory of its own that goes away with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class Process {
 public:
  /// Starts `program` with `arguments`; its output goes to the file `log`, in whose directory EAL
  /// leaves its files.
  Process(const std::string& program, const std::vector<std::string>& arguments,
          const std::string& log);
  /// Kills it if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  /// Its exit status; 128 + the signal's number when one ended it; -1 when it still runs after
  /// `patience`.
  int wait(std::chrono::seconds patience = kPatience);
  /// Whether its log holds `text` within `patience`.
  [[nodiscard]] bool logged(const std::string& text,
                            std::chrono::seconds patience = kPatience) const;
  [[nodiscard]] std::string log() const;

 private:
  std::string log_path_;
  pid_t pid_ = -1;
};

/// NATAGG_AGGREGATOR.
class DaemonProcess : public Process {
 public:
  DaemonProcess(const std::vector<std::string>& arguments, const std::string& log)
      : Process(NATAGG_AGGREGATOR, arguments, log) {}
};

/// EAL of this process, or of one that it turns into, leaves its files there.
void use_runtime_directory(const std::string& path);

/// EAL arguments for a process that shares nothing with others of this machine.
[[nodiscard]] std::vector<std::string> isolated_eal(const std::string& vdev,
                                                    const std::string& lcores = "0");

}  // namespace natagg::testing
