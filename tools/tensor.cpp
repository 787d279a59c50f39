// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/tensor.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace natagg::tools {
namespace {

struct TypeInfo {
  DataType type;
  std::string_view name;
  std::size_t size;
};

constexpr std::array kTypes{
    TypeInfo{DataType::kFloat32, "float32", 4}, TypeInfo{DataType::kFloat64, "float64", 8},
    TypeInfo{DataType::kFloat16, "float16", 2}, TypeInfo{DataType::kBfloat16, "bfloat16", 2}};

const TypeInfo& info(DataType type) {
  return *std::ranges::find(kTypes, type, &TypeInfo::type);
}

template <typename T, typename... Format>
std::string to_text(T value, Format... format) {
  std::array<char, 32> text{};  // the longest double has 24
  return {text.data(), std::to_chars(text.begin(), text.end(), value, format...).ptr};
}

}  // namespace

std::string_view type_name(DataType type) {
  return info(type).name;
}

std::optional<DataType> type_named(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &TypeInfo::name);
  return found == kTypes.end() ? std::nullopt : std::optional(found->type);
}

std::size_t size_of(DataType type) {
  return info(type).size;
}

std::string to_string(const Tensor& tensor, std::size_t index) {
  switch (tensor.type()) {
    case DataType::kFloat32: return to_text(tensor.values<float>()[index]);
    case DataType::kFloat64: return to_text(tensor.values<double>()[index]);
    case DataType::kFloat16:
    case DataType::kBfloat16: break;
  }
  constexpr int hexadecimal = 16;
  return "0x" + to_text(tensor.values<std::uint16_t>()[index], hexadecimal);
}

std::size_t first_difference(const Tensor& a, const Tensor& b) {
  const auto byte = std::ranges::mismatch(a.bytes(), b.bytes()).in1 - a.bytes().begin();
  return static_cast<std::size_t>(byte) / size_of(a.type());
}

}  // namespace natagg::tools
