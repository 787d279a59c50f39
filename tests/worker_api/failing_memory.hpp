// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// An operator new for the whole program that fails when a test wants it to.
#pragma once

#include <atomic>

namespace natagg::testing {

/// Allocations of this thread, or of all threads of workers, before one that fails; -1: none does.
extern thread_local long allocations_left;
extern std::atomic<long> allocations_left_to_workers;

}  // namespace natagg::testing
