// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "fenced.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "input.hpp"

namespace natagg::fuzz {

Fenced::Fenced(std::size_t capacity) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t usable = (capacity + page - 1) / page * page;
  size_ = usable + page;
  void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap() gives memory");
  memory_ = static_cast<std::byte*>(memory);
  fence_ = memory_ + usable;
  require(::mprotect(fence_, page, PROT_NONE) == 0, "mprotect() makes the fence");
}

Fenced::~Fenced() {
  ::munmap(memory_, size_);
}

}  // namespace natagg::fuzz
