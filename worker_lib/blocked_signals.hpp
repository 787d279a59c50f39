// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// For threads that the library starts: the application's signals are not theirs.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace natagg::worker {

/// Blocks signals in the calling thread, and so in the threads it starts meanwhile: all but those
/// for what a thread itself has done, which kill the process where they find no handler.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &earlier_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &earlier_, nullptr); }

 private:
  sigset_t earlier_{};
};

}  // namespace natagg::worker
