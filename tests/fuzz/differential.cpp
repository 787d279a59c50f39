// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "differential.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "proto/kernels.hpp"

namespace natagg::fuzz {
namespace {

constexpr std::uint8_t kGuard = 0xA5;

/// Memory for kMaxCount elements of up to 8 bytes, at any element's distance from a 64-byte
/// boundary, between guards.
class Buffer {
 public:
  /// Room for `count` elements, holding `values` where there are any.
  template <typename T, typename Value = T>
  T* place(std::size_t count, std::size_t offset, const Value* values = nullptr) {
    begin_ = 64 + offset % (64 / sizeof(T)) * sizeof(T);
    end_ = begin_ + count * sizeof(T);
    std::memset(storage_ + begin_ - 64, kGuard, end_ - begin_ + 128);
    for (std::size_t i = 0; values != nullptr && i < count; ++i) {
      // An element's bits are the lower ones of the case's.
      std::memcpy(storage_ + begin_ + i * sizeof(T), values + i, sizeof(T));
    }
    return reinterpret_cast<T*>(storage_ + begin_);
  }

  [[nodiscard]] bool intact() const {
    const auto guarded = [](std::uint8_t byte) { return byte == kGuard; };
    return std::all_of(storage_ + begin_ - 64, storage_ + begin_, guarded) &&
           std::all_of(storage_ + end_, storage_ + end_ + 64, guarded);
  }

  bool operator==(const Buffer& other) const {
    return end_ - begin_ == other.end_ - other.begin_ &&
           std::memcmp(storage_ + begin_, other.storage_ + other.begin_, end_ - begin_) == 0;
  }

 private:
  alignas(64) std::uint8_t storage_[64 + 64 + 8 * kMaxCount + 64];
  std::size_t begin_ = 64;
  std::size_t end_ = 64;
};

struct Outcome {
  Buffer out;
  Buffer carry;
  nat8::Tally tally;
  Scan scan;
};

template <typename Element>
void encode(Kernels::Encode<Element>* kernel, const Case& c, Buffer& in, Outcome& outcome) {
  kernel(in.place<Element>(c.count, c.in_offset, c.element.data()),
         outcome.out.place<std::uint8_t>(c.count, c.out_offset), c.count, c.first, c.key, c.shift,
         outcome.tally);
}

template <typename Element>
void decode(Kernels::Decode<Element>* kernel, const Case& c, const std::uint8_t* in,
            Outcome& outcome) {
  kernel(in, outcome.out.place<Element>(c.count, c.out_offset), c.count, c.shift, c.divisor);
}

/// A sum to which one more byte can be added.
std::int64_t with_room(std::uint64_t bits) {
  return static_cast<std::int64_t>(bits) / 4;
}

void run(const Kernels& kernels, const Case& c, Outcome& outcome) {
  static Buffer in;
  outcome.tally = {};
  outcome.scan = {};
  outcome.carry.place<std::int16_t>(0, 0);
  const auto bytes = [&c] { return in.place<std::uint8_t>(c.count, c.in_offset, c.byte.data()); };
  const auto sums = [&c](Buffer& buffer, std::size_t offset) {
    return buffer.place<std::int64_t>(c.count, offset, c.element.data());
  };
  switch (c.target) {
    case Target::kEncodeF32: encode<float>(kernels.encode_f32, c, in, outcome); break;
    case Target::kEncodeF64: encode<double>(kernels.encode_f64, c, in, outcome); break;
    case Target::kEncodeF16: encode<std::uint16_t>(kernels.encode_f16, c, in, outcome); break;
    case Target::kEncodeBf16: encode<std::uint16_t>(kernels.encode_bf16, c, in, outcome); break;
    case Target::kRecompress:
      kernels.recompress(sums(in, c.in_offset),
                         outcome.out.place<std::uint8_t>(c.count, c.out_offset), c.count, c.first,
                         c.key, outcome.tally);
      break;
    case Target::kDecodeF32: decode<float>(kernels.decode_f32, c, bytes(), outcome); break;
    case Target::kDecodeF64: decode<double>(kernels.decode_f64, c, bytes(), outcome); break;
    case Target::kDecodeF16: decode<std::uint16_t>(kernels.decode_f16, c, bytes(), outcome); break;
    case Target::kDecodeBf16:
      decode<std::uint16_t>(kernels.decode_bf16, c, bytes(), outcome);
      break;
    case Target::kStreamF32: decode<float>(kernels.stream_f32, c, bytes(), outcome); break;
    case Target::kScan:
      outcome.out.place<std::uint8_t>(0, 0);
      outcome.scan = kernels.scan(bytes(), c.count);
      break;
    case Target::kStore:
      kernels.store(bytes(), outcome.out.place<std::int64_t>(c.count, c.out_offset), c.count);
      break;
    case Target::kAccumulate: {
      std::int64_t* slot = sums(outcome.out, c.out_offset);
      for (std::size_t i = 0; i < c.count; ++i) slot[i] = with_room(c.element[i]);
      kernels.accumulate(bytes(), slot, c.count);
      break;
    }
    case Target::kAccumulateWide:
      kernels.accumulate_wide(
          bytes(), sums(outcome.out, c.out_offset),
          outcome.carry.place<std::int16_t>(c.count, c.in_offset + 1, c.carry.data()), c.count);
      break;
  }
}

const char* what_differs(const Outcome& a, const Outcome& b) {
  if (!a.out.intact() || !a.carry.intact()) return "wrote beyond its output";
  if (!(a.out == b.out)) return "another output";
  if (!(a.carry == b.carry)) return "another carry";
  if (!(a.tally == b.tally)) return "another tally";
  if (a.scan.largest_code != b.scan.largest_code || a.scan.any_special != b.scan.any_special ||
      a.scan.malformed != b.scan.malformed) {
    return "another scan";
  }
  return nullptr;
}

}  // namespace

std::string difference(const Case& c) {
  static Outcome expected;
  static Outcome outcome;
  const Kernels* scalar = find_kernels("scalar");
  run(*scalar, c, expected);
  for (const Kernels& kernels : all_kernels()) {
    if (kernels.name == scalar->name || !kernels.supported()) continue;
    run(kernels, c, outcome);
    if (const char* what = what_differs(outcome, expected); what != nullptr) {
      return std::string(kernels.name) + ": " + what + ", kernel " +
             std::to_string(static_cast<int>(c.target)) + ", " + std::to_string(c.count) +
             " values from " + std::to_string(c.first) + ", shift " + std::to_string(c.shift) +
             ", divisor " + std::to_string(c.divisor);
    }
  }
  return {};
}

}  // namespace natagg::fuzz
