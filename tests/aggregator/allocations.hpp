// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What this program allocates with operator new, counted; and memory that runs out.
#pragma once

#include <cstddef>

namespace natagg::test {

/// Calls of operator new so far.
[[nodiscard]] std::size_t allocations();

/// Bytes allocated with operator new and not freed yet.
[[nodiscard]] std::size_t live_bytes();

/// While it lives, aligned allocations, as those of slots, throw std::bad_alloc.
class FailingAllocations {
 public:
  FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
  ~FailingAllocations();
};

}  // namespace natagg::test
