// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Between an operation's tensors, of any type, and the bytes of one of its chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/kernels.hpp"
#include "proto/operation.hpp"

namespace natagg::worker {

/// Bytes of one value; 0 for a type that is none.
[[nodiscard]] constexpr std::size_t size_of(proto::DataType type) {
  switch (type) {
    case proto::DataType::kFloat32: return 4;
    case proto::DataType::kFloat64: return 8;
    case proto::DataType::kFloat16:
    case proto::DataType::kBfloat16: return 2;
  }
  return 0;
}

/// bytes[i] = the byte of value `element` + i of `tensor`, whose values are of `type`.
void encode_chunk(const Kernels& kernels, proto::DataType type, const void* tensor,
                  std::uint64_t element, std::span<std::uint8_t> bytes,
                  const proto::RoundingKey& key, int shift, nat8::Tally& tally);

/// Value `element` + i of `tensor`, which has `length`, = bytes[i]'s value times `scale`.
void decode_chunk(const Kernels& kernels, proto::DataType type, std::span<const std::uint8_t> bytes,
                  void* tensor, std::uint64_t length, std::uint64_t element, int shift,
                  const nat8::Scale& scale);

}  // namespace natagg::worker
