// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// More than 2^31 values in one call. The arrays are one small piece of memory that the address
// space shows over and over: kernels write and read gigabytes, and the machine keeps megabytes.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "proto/kernels.hpp"

namespace natagg {
namespace {

constexpr std::size_t kCount = (std::size_t{1} << 31) + 133;

template <typename T>
class Repeated {
 public:
  static constexpr std::size_t kBytes = std::size_t{8} << 20;
  static constexpr std::size_t kPeriod = kBytes / sizeof(T);

  Repeated() {
    const int file = memfd_create("natagg", 0);
    if (file < 0 || ftruncate(file, kBytes) != 0) return;
    void* place = mmap(nullptr, kPieces * kBytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place != MAP_FAILED) {
      data_ = static_cast<T*>(place);
      for (std::size_t i = 0; i < kPieces; ++i) {
        if (mmap(data_ + i * kPeriod, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                 0) == MAP_FAILED) {
          data_ = nullptr;
          break;
        }
      }
    }
    close(file);
  }
  ~Repeated() {
    if (data_ != nullptr) munmap(data_, kPieces * kBytes);
  }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  T* data() { return data_; }

 private:
  static constexpr std::size_t kPieces = kCount / kPeriod + 1;
  T* data_ = nullptr;
};

TEST(LongLengths, EncodeReachesTheEndWithTheRightRandomness) {
  Repeated<std::uint16_t> in;
  Repeated<std::uint8_t> out;
  ASSERT_TRUE(in.data() != nullptr && out.data() != nullptr);
  for (std::size_t i = 0; i < in.kPeriod; ++i) {
    in.data()[i] = static_cast<std::uint16_t>(0x3F80 + i % 128);  // 1 (1 + i/128)
  }
  in.data()[5] = 0x7FC0;
  const proto::RoundingKey key{.seed = 77, .operation = 1, .who = 2};
  nat8::Tally tally;
  default_kernels().encode_bf16(in.data(), out.data(), kCount, 3, key, 0, tally);
  EXPECT_EQ(tally, (nat8::Tally{.nans = kCount / in.kPeriod + (kCount % in.kPeriod > 5 ? 1 : 0)}));

  constexpr std::size_t kTail = 1000;
  const std::size_t begin = kCount - kTail;
  std::vector<std::uint8_t> tail(kTail);
  default_kernels().encode_bf16(in.data() + begin, tail.data(), kTail, 3 + begin, key, 0, tally);
  EXPECT_EQ(std::vector<std::uint8_t>(out.data() + begin, out.data() + kCount), tail);
}

TEST(LongLengths, DecodeAndScanReachTheEnd) {
  Repeated<std::uint8_t> in;
  Repeated<std::uint16_t> out;
  ASSERT_TRUE(in.data() != nullptr && out.data() != nullptr);
  for (std::size_t i = 0; i < in.kPeriod; ++i) in.data()[i] = static_cast<std::uint8_t>(i % 61);
  EXPECT_EQ(default_kernels().scan(in.data(), kCount).largest_code, 60);
  default_kernels().decode_bf16(in.data(), out.data(), kCount, 0, 3);
  std::vector<std::uint16_t> tail(1000);
  const std::size_t begin = kCount - tail.size();
  default_kernels().decode_bf16(in.data() + begin, tail.data(), tail.size(), 0, 3);
  EXPECT_EQ(std::vector<std::uint16_t>(out.data() + begin, out.data() + kCount), tail);
}

}  // namespace
}  // namespace natagg
