// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What an lcore does when there is nothing to do.
#pragma once

#include <cstdint>

namespace natagg::aggregator::io {

/// Polite: after kSpins turns without work, naps of 10 us that double up to 200 us, until there is
/// work again. The one other nap of an lcore is at a closed InterruptGate, however it idles.
class Idle {
 public:
  static constexpr unsigned kSpins = 64;
  static constexpr std::int64_t kFirstNap_ns = 10'000;
  static constexpr std::int64_t kLastNap_ns = 200'000;

  explicit Idle(bool polite) : polite_(polite) {}

  /// On the lcore, before its loop: naps are to be as short as asked for, where the kernel's
  /// default is to add up to 50 us.
  void prepare_thread() const;

  /// The nap to take after a turn that did `work`, in ns; 0: none.
  [[nodiscard]] std::int64_t next_nap(unsigned work) {
    if (work != 0 || !polite_) {
      empty_turns_ = 0;
      nap_ns_ = kFirstNap_ns;
      return 0;
    }
    if (empty_turns_ < kSpins) {
      ++empty_turns_;
      return 0;
    }
    const std::int64_t nap = nap_ns_;
    nap_ns_ = nap * 2 < kLastNap_ns ? nap * 2 : kLastNap_ns;
    return nap;
  }

  static void sleep(std::int64_t nap_ns);

 private:
  bool polite_;
  unsigned empty_turns_ = 0;
  std::int64_t nap_ns_ = kFirstNap_ns;
};

}  // namespace natagg::aggregator::io
