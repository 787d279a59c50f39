// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Frameworks set the processor's rounding mode and flush denormals: no type's bits may change.

#include <cfenv>
#include <cstring>

#include "kernel_inputs.hpp"
#include "kernel_support.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace natagg {
namespace {

/// The process's floating-point environment for as long as this lives.
class Environment {
 public:
  Environment(int rounding, bool flush) {
    std::fegetenv(&saved_);
    std::fesetround(rounding);
#if defined(__x86_64__)
    constexpr unsigned kDenormalsAreZero = 0x40;
    if (flush) _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON | kDenormalsAreZero);
#endif
  }
  ~Environment() {
    std::fesetenv(&saved_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::fenv_t saved_;
};

class EnvironmentTest : public KernelTest {
 protected:
  /// `run` returns bits that must be the same everywhere.
  template <typename Run>
  void check(const Run& run) {
    const auto expected = run();
    for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      for (const bool flush : {false, true}) {
        auto here = expected;
        {
          const Environment environment(rounding, flush);
          here = run();
        }
        EXPECT_EQ(here, expected) << rounding << flush;
      }
    }
  }

  template <typename Element>
  void check_encode(Kernels::Encode<Element>* kernel, const std::vector<Element>& in, int shift) {
    for (const proto::RoundingKey& key : {kStochastic, kNearest}) {
      check([&] {
        Bytes result{.bytes = std::vector<std::uint8_t>(in.size()), .tally = {}};
        kernel(in.data(), result.bytes.data(), in.size(), 0, key, shift, result.tally);
        return result;
      });
    }
  }

  /// Where results are denormal, and where they are not.
  template <typename Element>
  void check_decode(Kernels::Decode<Element>* kernel) {
    const std::vector<std::uint8_t> bytes = inputs::valid_bytes(600, 91);
    for (const int shift : {-64, 0, 30, 64}) {
      for (const std::uint32_t divisor : {1U, 7U, 3'000'000'001U}) {
        check([&] {
          std::vector<Element> values(bytes.size());
          kernel(bytes.data(), values.data(), bytes.size(), shift, divisor);
          std::vector<std::uint8_t> bits(values.size() * sizeof(Element));
          std::memcpy(bits.data(), values.data(), bits.size());
          return bits;
        });
      }
    }
  }
};

TEST_P(EnvironmentTest, EncodesTheSameBytesInEachOne) {
  check_encode<float>(kernels_->encode_f32, inputs::floats(600, -64, 92), -64);
  check_encode<double>(kernels_->encode_f64, inputs::doubles(600, -64, 93), -64);
  check_encode<std::uint16_t>(kernels_->encode_f16, inputs::halves(600, 94), 36);
  check_encode<std::uint16_t>(kernels_->encode_bf16, inputs::halves(600, 95), -64);
}

TEST_P(EnvironmentTest, DecodesTheSameBitsInEachOne) {
  check_decode<float>(kernels_->decode_f32);
  check_decode<double>(kernels_->decode_f64);
  check_decode<std::uint16_t>(kernels_->decode_f16);
  check_decode<std::uint16_t>(kernels_->decode_bf16);
}

TEST_P(EnvironmentTest, AddsAndRecompressesTheSameInEachOne) {
  const std::vector<std::uint8_t> bytes = inputs::valid_bytes(600, 96);
  const std::vector<std::int64_t> sums = inputs::small_sums(600, 97);
  check([&] {
    std::vector<std::int64_t> slots = sums;
    kernels_->accumulate(bytes.data(), slots.data(), slots.size());
    Bytes result{.bytes = std::vector<std::uint8_t>(slots.size()), .tally = {}};
    kernels_->recompress(slots.data(), result.bytes.data(), slots.size(), 0, kStochastic,
                         result.tally);
    return result;
  });
}

INSTANTIATE_TEST_SUITE_P(Every, EnvironmentTest, testing::ValuesIn(all_names()),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace natagg
