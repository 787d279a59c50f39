// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "daemon/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace natagg::testing {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(10);

int decode(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = std::filesystem::temp_directory_path() / "natagg-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::filesystem::remove_all(path_);
}

Process::Process(const std::string& program, const std::vector<std::string>& arguments,
                 const std::string& log)
    : log_path_(log) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const std::string directory = std::filesystem::path(log).parent_path();
  pid_ = fork();
  if (pid_ == 0) {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    use_runtime_directory(directory);
    execv(argv.front(), argv.data());
    _exit(127);
  }
  if (pid_ < 0) throw std::runtime_error("fork");
}

Process::~Process() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  kill(pid_, number);
}

int Process::wait(std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return decode(status);
    }
    std::this_thread::sleep_for(kPoll);
  } while (std::chrono::steady_clock::now() < end);
  return -1;
}

bool Process::logged(const std::string& text, std::chrono::seconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    if (log().find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(kPoll);
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

std::string Process::log() const {
  std::ifstream stream(log_path_);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void use_runtime_directory(const std::string& path) {
  setenv("RUNTIME_DIRECTORY", path.c_str(), 1);
}

std::vector<std::string> isolated_eal(const std::string& vdev, const std::string& lcores) {
  return {"--lcores",
          lcores,
          "--no-huge",
          "--no-pci",
          "--no-shconf",
          "--no-telemetry",
          "-m",
          "128",
          "--file-prefix",
          "natagg-test-" + std::to_string(getpid()),
          "--vdev",
          vdev};
}

}  // namespace natagg::testing
