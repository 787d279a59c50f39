// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Memory that ends where a page without access begins: reading one byte too many is a fault in any
// build, with sanitizers or without.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace natagg::fuzz {

class Fenced {
 public:
  /// Room for `capacity` bytes. Ends the process when there is none.
  explicit Fenced(std::size_t capacity);
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  ~Fenced();

  /// A copy of `bytes` up against the fence, until the next call.
  std::span<const std::byte> hold(std::span<const std::byte> bytes) {
    std::byte* begin = fence_ - bytes.size();
    if (!bytes.empty()) std::memmove(begin, bytes.data(), bytes.size());
    return {begin, bytes.size()};
  }

 private:
  std::byte* memory_;
  std::byte* fence_;
  std::size_t size_;
};

}  // namespace natagg::fuzz
