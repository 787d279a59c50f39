// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_api/failing_memory.hpp"

#include <sys/prctl.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

namespace natagg::testing {

thread_local long allocations_left = -1;
std::atomic<long> allocations_left_to_workers = -1;

namespace {

bool in_worker_thread() {
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  return std::strcmp(name.data(), "natagg-worker") == 0;
}

bool fails() {
  if (allocations_left >= 0) return allocations_left-- == 0;
  return allocations_left_to_workers >= 0 && in_worker_thread() &&
         allocations_left_to_workers-- == 0;
}

}  // namespace
}  // namespace natagg::testing

void* operator new(std::size_t size) {
  void* memory = natagg::testing::fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
