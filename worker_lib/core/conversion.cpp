// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/conversion.hpp"

#include <array>

namespace natagg::worker {
namespace {

// Of float32: 4 MiB, twice what a core's own cache holds. The application reads none of it before
// the last chunk has come.
constexpr std::uint64_t kStreamedLength = 1 << 20;

/// Without a kernel: it is rare that a result is partial. Divides once for each byte value.
template <typename Element, Element (*kDecode)(std::uint8_t, int, const nat8::Scale&)>
void decode_slowly(std::span<const std::uint8_t> bytes, Element* out, int shift,
                   const nat8::Scale& scale) {
  std::array<bool, 256> known{};
  std::array<Element, 256> values;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t byte = bytes[i];
    if (!known[byte]) values[byte] = kDecode(byte, shift, scale);
    known[byte] = true;
    out[i] = values[byte];
  }
}

}  // namespace

void encode_chunk(const Kernels& kernels, proto::DataType type, const void* tensor,
                  std::uint64_t element, std::span<std::uint8_t> bytes,
                  const proto::RoundingKey& key, int shift, nat8::Tally& tally) {
  const auto encode = [&]<typename Element>(Kernels::Encode<Element>* kernel) {
    kernel(static_cast<const Element*>(tensor) + element, bytes.data(), bytes.size(), element, key,
           shift, tally);
  };
  switch (type) {
    case proto::DataType::kFloat32: return encode(kernels.encode_f32);
    case proto::DataType::kFloat64: return encode(kernels.encode_f64);
    case proto::DataType::kFloat16: return encode(kernels.encode_f16);
    case proto::DataType::kBfloat16: return encode(kernels.encode_bf16);
  }
}

void decode_chunk(const Kernels& kernels, proto::DataType type, std::span<const std::uint8_t> bytes,
                  void* tensor, std::uint64_t length, std::uint64_t element, int shift,
                  const nat8::Scale& scale) {
  const auto decode = [&]<typename Element>(Kernels::Decode<Element>* kernel, auto slowly) {
    Element* out = static_cast<Element*>(tensor) + element;
    if (scale.multiplier == 1) return kernel(bytes.data(), out, bytes.size(), shift, scale.divisor);
    slowly(bytes, out, shift, scale);
  };
  using Half = std::uint16_t;
  switch (type) {
    case proto::DataType::kFloat32:
      return decode(length < kStreamedLength ? kernels.decode_f32 : kernels.stream_f32,
                    decode_slowly<float, nat8::decode_float>);
    case proto::DataType::kFloat64:
      return decode(kernels.decode_f64, decode_slowly<double, nat8::decode_double>);
    case proto::DataType::kFloat16:
      return decode(kernels.decode_f16, decode_slowly<Half, nat8::decode_float16>);
    case proto::DataType::kBfloat16:
      return decode(kernels.decode_bf16, decode_slowly<Half, nat8::decode_bfloat16>);
  }
}

}  // namespace natagg::worker
