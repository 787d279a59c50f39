// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Values of a type that is known at run time alone.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/operation.hpp"

namespace natagg::tools {

using proto::DataType;

/// "float32", "float64", "float16", "bfloat16", and the type of such a name.
[[nodiscard]] std::string_view type_name(DataType type);
[[nodiscard]] std::optional<DataType> type_named(std::string_view name);

/// Bytes of one value.
[[nodiscard]] std::size_t size_of(DataType type);

class Tensor {
 public:
  Tensor() = default;
  Tensor(DataType type, std::size_t count) : type_(type), bytes_(count * size_of(type)) {}

  [[nodiscard]] DataType type() const { return type_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size() / size_of(type_); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }

  /// As float, as double, or as std::uint16_t that hold the bits of the 16-bit types.
  template <typename T>
  [[nodiscard]] std::span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <typename T>
  [[nodiscard]] std::span<T> values() {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

  bool operator==(const Tensor&) const = default;  // of bits: NaN equals itself

 private:
  DataType type_ = DataType::kFloat32;
  std::vector<std::byte> bytes_;
};

/// Value `index` as text: the shortest that names it, or the bits of a 16-bit type.
[[nodiscard]] std::string to_string(const Tensor& tensor, std::size_t index);

/// Index of the first value whose bits differ, or the size when none does. Both have one type and
/// size.
[[nodiscard]] std::size_t first_difference(const Tensor& a, const Tensor& b);

}  // namespace natagg::tools
