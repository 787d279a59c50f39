// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/bench/meeting.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <stdexcept>
#include <system_error>

namespace natagg::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::uint32_t* word(std::atomic<std::uint32_t>& atomic) {
  static_assert(sizeof atomic == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&atomic);
}

}  // namespace

Meeting::Meeting(const std::string& path, std::uint32_t rank, std::uint32_t world,
                 std::chrono::seconds limit)
    : rank_(rank), world_(world), limit_(limit) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) fail("open of " + path);
  // The file's zeros are the state before the first meeting.
  void* memory = MAP_FAILED;
  if (::ftruncate(file, sizeof(Shared)) == 0) {
    memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int error = errno;
  ::close(file);
  errno = error;
  if (memory == MAP_FAILED) fail("mapping of " + path);
  shared_ = static_cast<Shared*>(memory);
}

Meeting::~Meeting() {
  ::munmap(shared_, sizeof(Shared));
}

void Meeting::wait(const std::function<void()>& idle) {
  const Clock::time_point deadline = Clock::now() + limit_;
  const std::uint32_t round = shared_->round.load();
  if (shared_->arrived.fetch_add(1) + 1 == world_) {
    shared_->arrived = 0;
    shared_->round = round + 1;
    ::syscall(SYS_futex, word(shared_->round), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return;
  }
  constexpr timespec nap{.tv_sec = 0, .tv_nsec = 1'000'000};
  while (shared_->round == round) {
    ::syscall(SYS_futex, word(shared_->round), FUTEX_WAIT, round, &nap, nullptr, 0);
    idle();
    if (Clock::now() > deadline) {
      throw std::runtime_error("the other ranks have not come within " +
                               std::to_string(limit_.count()) + " s");
    }
  }
}

std::uint64_t Meeting::agree(std::uint64_t number, const std::function<void()>& idle) {
  if (rank_ == 0) shared_->number = number;
  wait(idle);
  return shared_->number;
}

}  // namespace natagg::bench
