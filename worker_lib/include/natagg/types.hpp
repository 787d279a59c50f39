// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The types of values that can be reduced, and what may hold them.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include "natagg/natagg.h"

namespace natagg {

/// The bits of an IEEE 754 binary16. No arithmetic: memory of a framework's own half type can be
/// handed over by reinterpret_cast.
struct Float16 {
  std::uint16_t bits;

  constexpr bool operator==(const Float16&) const = default;  // of bits: NaN equals itself
};

/// The bits of a bfloat16, the upper half of an IEEE 754 binary32; otherwise as Float16.
struct Bfloat16 {
  std::uint16_t bits;

  constexpr bool operator==(const Bfloat16&) const = default;
};

static_assert(sizeof(Float16) == 2 && alignof(Float16) == 2);
static_assert(sizeof(Bfloat16) == 2 && alignof(Bfloat16) == 2);

enum class DataType {
  kFloat32 = NATAGG_FLOAT32,
  kFloat64 = NATAGG_FLOAT64,
  kFloat16 = NATAGG_FLOAT16,
  kBfloat16 = NATAGG_BFLOAT16,
};

namespace detail {

template <DataType kType>
using Tag = std::integral_constant<DataType, kType>;

template <typename T>
struct TypeOf {};
template <>
struct TypeOf<float> : Tag<DataType::kFloat32> {};
template <>
struct TypeOf<double> : Tag<DataType::kFloat64> {};
template <>
struct TypeOf<Float16> : Tag<DataType::kFloat16> {};
template <>
struct TypeOf<Bfloat16> : Tag<DataType::kBfloat16> {};

}  // namespace detail

/// float, double, Float16 or Bfloat16.
template <typename T>
concept Value = requires {
  detail::TypeOf<T>::value;
};

template <Value T>
inline constexpr DataType kTypeOf = detail::TypeOf<T>::value;

/// Values in a row that somebody else owns: a span, or a vector or array with a name.
template <typename R>
concept Values = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> && Value<std::ranges::range_value_t<R>>;

/// The same, for writing.
template <typename R>
concept MutableValues =
    Values<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// The same, of the type that `In` has.
template <typename R, typename In>
concept MutableValuesLike =
    MutableValues<R> && std::same_as<std::ranges::range_value_t<R>, std::ranges::range_value_t<In>>;

}  // namespace natagg
