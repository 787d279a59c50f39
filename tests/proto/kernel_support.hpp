// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What tests of kernels share: every implementation forced by name, and guarded memory at every
// alignment.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "oracle.hpp"
#include "proto/kernels.hpp"

namespace natagg {

inline constexpr proto::RoundingKey kStochastic{
    .seed = 0xC0FF'EE00'1234'5678, .operation = 9, .who = 4};
inline constexpr proto::RoundingKey kNearest{.seed = 1, .mode = proto::Rounding::kNearest};

/// The most values that any implementation takes at once.
inline constexpr std::size_t kMostLanes = 128;

inline std::uint64_t fraction_at(const proto::RoundingKey& key, std::uint64_t element) {
  if (key.mode == proto::Rounding::kNearest) return std::uint64_t{1} << 63;
  return oracle::fraction(key.seed, key.operation, key.who, element);
}

struct Bytes {
  std::vector<std::uint8_t> bytes;
  nat8::Tally tally;

  bool operator==(const Bytes&) const = default;
};

/// A copy of values at a chosen distance from a 64-byte boundary, with a guard behind it.
template <typename T>
class Placed {
 public:
  Placed(std::size_t count, std::size_t alignment) : storage_(count * sizeof(T) + 256, kGuard) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    offset_ = (64 - address % 64) % 64 + alignment;
    count_ = count;
  }
  Placed(std::span<const T> values, std::size_t alignment) : Placed(values.size(), alignment) {
    std::copy(values.begin(), values.end(), data());
  }

  T* data() { return reinterpret_cast<T*>(storage_.data() + offset_); }
  std::vector<T> values() { return {data(), data() + count_}; }
  [[nodiscard]] bool intact() const {
    const auto guarded = [](std::uint8_t byte) { return byte == kGuard; };
    const auto begin = storage_.begin() + static_cast<std::ptrdiff_t>(offset_);
    return std::all_of(storage_.begin(), begin, guarded) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(count_ * sizeof(T)), storage_.end(),
                       guarded);
  }

 private:
  static constexpr std::uint8_t kGuard = 0xA5;
  std::vector<std::uint8_t> storage_;
  std::size_t offset_ = 0;
  std::size_t count_ = 0;
};

/// Parameter: an implementation's name.
class KernelTest : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    kernels_ = find_kernels(GetParam());
    if (kernels_ == nullptr) GTEST_SKIP() << "this CPU has no " << GetParam();
    ASSERT_EQ(kernels_->name, GetParam());
  }

  template <typename Element>
  Bytes encode(Kernels::Encode<Element>* kernel, std::span<const Element> in, std::uint64_t first,
               const proto::RoundingKey& key, int shift, std::size_t in_alignment = 0,
               std::size_t out_alignment = 0) {
    Placed<Element> source(in, in_alignment);
    Placed<std::uint8_t> out(in.size(), out_alignment);
    Bytes result;
    kernel(source.data(), out.data(), in.size(), first, key, shift, result.tally);
    EXPECT_TRUE(out.intact());
    result.bytes = out.values();
    return result;
  }

  const Kernels* kernels_ = nullptr;
};

inline std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names;
  for (const Kernels& kernels : all_kernels()) names.push_back(kernels.name);
  return names;
}

}  // namespace natagg
