// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "allocations.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t count = 0;
std::size_t bytes = 0;
bool failing = false;

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++count;
  bytes += ::malloc_usable_size(memory);
  return memory;
}

void discard(void* memory) {
  bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(std::malloc(std::max<std::size_t>(size, 1)));
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  if (failing) throw std::bad_alloc();
  const auto unit = static_cast<std::size_t>(alignment);
  return counted(
      std::aligned_alloc(unit, (std::max<std::size_t>(size, 1) + unit - 1) / unit * unit));
}

void operator delete(void* memory) noexcept {
  discard(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  discard(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  discard(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  discard(memory);
}

namespace natagg::test {

std::size_t allocations() {
  return count;
}

std::size_t live_bytes() {
  return bytes;
}

FailingAllocations::FailingAllocations() {
  failing = true;
}

FailingAllocations::~FailingAllocations() {
  failing = false;
}

}  // namespace natagg::test
