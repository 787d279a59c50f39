// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/core/conversion.hpp"

namespace natagg::worker {

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
                  void* tensor, std::uint64_t element, int shift, std::uint32_t divisor) {
  const auto decode = [&]<typename Element>(Kernels::Decode<Element>* kernel) {
    kernel(bytes.data(), static_cast<Element*>(tensor) + element, bytes.size(), shift, divisor);
  };
  switch (type) {
    case proto::DataType::kFloat32: return decode(kernels.decode_f32);
    case proto::DataType::kFloat64: return decode(kernels.decode_f64);
    case proto::DataType::kFloat16: return decode(kernels.decode_f16);
    case proto::DataType::kBfloat16: return decode(kernels.decode_bf16);
  }
}

}  // namespace natagg::worker
