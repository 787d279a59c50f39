// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "kernel_inputs.hpp"

#include <bit>
#include <random>

#include "proto/nat8.hpp"

namespace natagg::inputs {

std::vector<float> floats(std::size_t count, int shift, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values;
  while (values.size() < count) {
    auto bits = static_cast<std::uint32_t>(random());
    const auto with_exponent = [&bits](std::uint64_t biased) {
      return (bits & 0x807F'FFFF) | static_cast<std::uint32_t>(biased) << 23;
    };
    const auto smallest = static_cast<std::uint64_t>(127 + nat8::kMinExponent + shift);
    switch (random() % 12) {
      case 0: bits &= 0x8000'0000; break;
      case 1: bits = with_exponent(0); break;
      case 2: bits = with_exponent(255); break;
      case 3: bits = (bits & 0x8000'0000) | 0x7F80'0000; break;
      case 4: bits = with_exponent(smallest + 60) & 0xFF80'0001; break;  // 2^10, or just above
      case 5: bits = (with_exponent(smallest + 59) | 0x007F'FFFF) - (bits & 3); break;
      case 6: bits = with_exponent(smallest) & 0xFF80'0003; break;
      case 7: bits = with_exponent(smallest - 1 - random() % 12); break;
      case 8: bits = with_exponent(smallest + random() % 61) & 0xFF80'0000; break;
      case 9: break;  // any bits
      default: bits = with_exponent(smallest + random() % 60); break;
    }
    values.push_back(std::bit_cast<float>(bits));
  }
  return values;
}

std::vector<double> doubles(std::size_t count, int shift, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values;
  while (values.size() < count) {
    std::uint64_t bits = random();
    const auto with_exponent = [&bits](std::uint64_t biased) {
      return (bits & 0x800F'FFFF'FFFF'FFFF) | biased << 52;
    };
    constexpr std::uint64_t kNoFraction = 0xFFF0'0000'0000'0000;
    const auto smallest = static_cast<std::uint64_t>(1023 + nat8::kMinExponent + shift);
    switch (random() % 12) {
      case 0: bits &= std::uint64_t{1} << 63; break;
      case 1: bits = (bits & std::uint64_t{1} << 63) | random() % 3; break;
      case 2: bits = with_exponent(2047) & (kNoFraction | 1); break;  // infinity, or just a NaN
      case 3: bits = with_exponent(2047); break;
      case 4: bits = with_exponent(smallest + 60) & (kNoFraction | 1); break;
      case 5: bits = (with_exponent(smallest + 59) | ~kNoFraction) - (bits & 3); break;
      case 6: bits = with_exponent(smallest) & (kNoFraction | 3); break;
      case 7: bits = with_exponent(smallest - 1 - random() % 12); break;
      case 8: bits = with_exponent(smallest - 1) | ~kNoFraction; break;
      case 9: break;  // any bits
      default: bits = with_exponent(smallest + random() % 60); break;
    }
    values.push_back(std::bit_cast<double>(bits));
  }
  return values;
}

std::vector<std::uint16_t> halves(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint16_t> values;
  while (values.size() < count) values.push_back(static_cast<std::uint16_t>(random()));
  return values;
}

std::vector<std::int64_t> sums(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> values;
  while (values.size() < count) {
    std::uint64_t sum = random() >> (random() % 64);
    switch (random() % 10) {
      case 0: sum = 0; break;
      case 1: sum = std::uint64_t{1} << 63; break;
      case 2: sum = (std::uint64_t{1} << 63) - 1; break;
      case 3: sum = (std::uint64_t{1} << 60) + random() % 3 - 1; break;
      case 4: sum = std::uint64_t{1} << (random() % 62); break;
      case 5: sum = (std::uint64_t{3} << (random() % 62)) + random() % 3 - 1; break;  // a tie
      default: break;
    }
    values.push_back(static_cast<std::int64_t>(random() % 2 == 0 ? sum : 0 - sum));
  }
  return values;
}

std::vector<std::int64_t> small_sums(std::size_t count, std::uint64_t seed) {
  std::vector<std::int64_t> values = sums(count, seed);
  for (std::int64_t& value : values) value /= 4;
  return values;
}

std::vector<std::uint8_t> every_valid_byte() {
  std::vector<std::uint8_t> bytes;
  for (int byte = 0; byte < 256; ++byte) {
    if (nat8::is_valid(static_cast<std::uint8_t>(byte))) {
      bytes.push_back(static_cast<std::uint8_t>(byte));
    }
  }
  return bytes;
}

std::vector<std::uint8_t> valid_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<std::uint8_t> all = every_valid_byte();
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < count) {
    // Runs without specials too, which are what kernels are fast on.
    bytes.push_back(all[random() % (bytes.size() % 100 < 70 ? 61 : all.size())]);
  }
  return bytes;
}

}  // namespace natagg::inputs
