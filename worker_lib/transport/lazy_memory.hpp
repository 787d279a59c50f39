// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Memory of which only those pages take room that have been written to.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace natagg::worker {

class LazyMemory {
 public:
  /// Zeros. Throws std::bad_alloc.
  explicit LazyMemory(std::size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    // Huge pages would take up all of it at the first byte; a kernel without them may refuse.
    static_cast<void>(::madvise(data_, bytes_, MADV_NOHUGEPAGE));
  }
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;
  ~LazyMemory() { ::munmap(data_, bytes_); }

  [[nodiscard]] std::byte* data() { return static_cast<std::byte*>(data_); }
  [[nodiscard]] const std::byte* data() const { return static_cast<const std::byte*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace natagg::worker
