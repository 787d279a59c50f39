// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Encode and decode of float64, float16 and bfloat16, in every implementation.

#include <bit>
#include <cfenv>
#include <cstring>

#include "kernel_inputs.hpp"
#include "kernel_support.hpp"

namespace natagg {
namespace {

using proto::RoundingKey;

class TypesKernelTest : public KernelTest {
 protected:
  /// Compares `kernel` with the definition, given what the elements' values are.
  template <typename Element>
  void check_encode(Kernels::Encode<Element>* kernel, std::span<const Element> in,
                    double (*value)(Element), std::uint64_t first, const RoundingKey& key,
                    int shift, std::size_t alignment) {
    Bytes expected;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto outcome = oracle::encode(value(in[i]), shift, fraction_at(key, first + i));
      expected.bytes.push_back(outcome.byte);
      expected.tally += outcome.tally;
    }
    ASSERT_EQ(encode<Element>(kernel, in, first, key, shift,
                              alignment / sizeof(Element) * sizeof(Element), alignment),
              expected)
        << in.size() << " values from " << first << ", shift " << shift;
  }

  template <typename Element, typename Inputs>
  void check_encode_everywhere(Kernels::Encode<Element>* kernel, double (*value)(Element),
                               const Inputs& inputs) {
    for (const RoundingKey& key : {kStochastic, kNearest}) {
      for (std::size_t count = 0; count <= 2 * kMostLanes + 1; ++count) {
        const std::vector<Element> in = inputs(count, 0, count);
        check_encode<Element>(kernel, in, value, count * 37 % 128, key, 0, count % 64);
      }
      for (int shift = -nat8::kMaxShift; shift <= nat8::kMaxShift; ++shift) {
        const std::vector<Element> in = inputs(512, shift, 99);
        check_encode<Element>(kernel, in, value, (std::uint64_t{1} << 35) - 128, key, shift, 0);
      }
    }
  }

  template <typename Element>
  void check_decode(Kernels::Decode<Element>* kernel,
                    Element (*reference)(std::uint8_t, int, std::uint32_t)) {
    std::vector<std::uint8_t> bytes = inputs::every_valid_byte();
    const std::vector<std::uint8_t> more = inputs::valid_bytes(2 * kMostLanes + 1, 7);
    bytes.insert(bytes.end(), more.begin(), more.end());
    for (const int shift : {-64, -52, -20, 0, 3, 6, 64}) {
      for (const std::uint32_t divisor :
           {1U, 2U, 3U, 7U, 9U, 1000U, 4097U, (1U << 24) + 1, 0xFFFF'FFFFU}) {
        Placed<std::uint8_t> in(std::span<const std::uint8_t>(bytes), 5);
        Placed<Element> out(bytes.size(), sizeof(Element));
        kernel(in.data(), out.data(), bytes.size(), shift, divisor);
        ASSERT_TRUE(out.intact());
        for (std::size_t i = 0; i < bytes.size(); ++i) {
          const Element expected = reference(bytes[i], shift, divisor);
          ASSERT_EQ(std::memcmp(&out.data()[i], &expected, sizeof(Element)), 0)
              << int{bytes[i]} << " shift " << shift << " / " << divisor;
        }
      }
    }
    for (std::size_t count = 0; count <= 2 * kMostLanes + 1; ++count) {
      Placed<std::uint8_t> in(std::span<const std::uint8_t>(bytes).first(count), count % 64);
      Placed<Element> out(count, count % 8 * sizeof(Element));
      kernel(in.data(), out.data(), count, 0, 3);
      ASSERT_TRUE(out.intact());
      for (std::size_t i = 0; i < count; ++i) {
        const Element expected = reference(bytes[i], 0, 3);
        ASSERT_EQ(std::memcmp(&out.data()[i], &expected, sizeof(Element)), 0) << count;
      }
    }
  }
};

double same(double value) {
  return value;
}

TEST_P(TypesKernelTest, EncodesFloat64AsDefined) {
  check_encode_everywhere<double>(kernels_->encode_f64, same, inputs::doubles);
}

TEST_P(TypesKernelTest, EncodesFloat16AsDefined) {
  check_encode_everywhere<std::uint16_t>(
      kernels_->encode_f16, oracle::from_float16,
      [](std::size_t count, int, std::uint64_t seed) { return inputs::halves(count, seed); });
}

TEST_P(TypesKernelTest, EncodesBfloat16AsDefined) {
  check_encode_everywhere<std::uint16_t>(
      kernels_->encode_bf16, oracle::from_bfloat16,
      [](std::size_t count, int, std::uint64_t seed) { return inputs::halves(count, seed); });
}

TEST_P(TypesKernelTest, EncodesEveryFloat16AndBfloat16AsDefined) {
  std::vector<std::uint16_t> all;
  for (int bits = 0; bits < 0x10000; ++bits) all.push_back(static_cast<std::uint16_t>(bits));
  check_encode<std::uint16_t>(kernels_->encode_f16, all, oracle::from_float16, 0, kStochastic, 0,
                              0);
  check_encode<std::uint16_t>(kernels_->encode_bf16, all, oracle::from_bfloat16, 0, kStochastic, 0,
                              0);
}

TEST_P(TypesKernelTest, LetsTheLowerFortyEightBitsDecideForFloat64) {
  for (std::uint64_t element = 0; element < 2048; ++element) {
    // The least f, of 52 bits, with which f + R reaches 1, and one less.
    const std::uint64_t missing = 0 - fraction_at(kStochastic, element);
    const std::uint64_t least = (missing + 0xFFF) >> 12;
    if (least == 0 || least >> 52 != 0) continue;
    const double values[] = {std::bit_cast<double>(std::uint64_t{1023} << 52 | least),
                             std::bit_cast<double>(std::uint64_t{1023} << 52 | (least - 1))};
    for (std::size_t i = 0; i < 2; ++i) {
      const Bytes result =
          encode<double>(kernels_->encode_f64, {&values[i], 1}, element, kStochastic, 0);
      ASSERT_EQ(result.bytes[0], i == 0 ? 51 : 50) << element;
    }
  }
}

TEST_P(TypesKernelTest, DecodesFloat64AsTheReferenceDoes) {
  check_decode<double>(kernels_->decode_f64, nat8::decode_double);
}

TEST_P(TypesKernelTest, DecodesFloat16AsTheReferenceDoes) {
  check_decode<std::uint16_t>(kernels_->decode_f16, nat8::decode_float16);
}

TEST_P(TypesKernelTest, DecodesBfloat16AsTheReferenceDoes) {
  check_decode<std::uint16_t>(kernels_->decode_bf16, nat8::decode_bfloat16);
}

TEST_P(TypesKernelTest, GivesTheSameFloat16InEveryRoundingMode) {
  const std::vector<std::uint8_t> bytes = inputs::valid_bytes(600, 81);
  std::vector<std::uint16_t> expected(bytes.size());
  kernels_->decode_f16(bytes.data(), expected.data(), bytes.size(), 0, 7);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    std::vector<std::uint16_t> out(bytes.size());
    kernels_->decode_f16(bytes.data(), out.data(), bytes.size(), 0, 7);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(out, expected) << mode;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, TypesKernelTest, testing::ValuesIn(all_names()),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace natagg
