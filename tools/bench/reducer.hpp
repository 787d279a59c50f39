// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What is measured: an all-reduce by one library, seen from one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tools/json_object.hpp"

namespace natagg::bench {

/// Those of one tensor, which is reduced in place, as frameworks do.
using TensorValues = std::span<float>;

class Reducer {
 public:
  Reducer() = default;
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  virtual ~Reducer() = default;

  [[nodiscard]] virtual std::uint32_t rank() const = 0;
  [[nodiscard]] virtual std::uint32_t world() const = 0;

  /// How often in a row operations may follow each other without a fill() between them.
  [[nodiscard]] virtual std::uint64_t longest_row() const = 0;

  /// Called once, before all else: the tensors that every operation is about.
  virtual void prepare(std::span<const TensorValues>) {}

  /// This rank's values, for the next operation: tensor `index` of those that were prepared.
  virtual void fill(TensorValues tensor, std::size_t index) = 0;

  /// Sums all tensors over all ranks. Returns once this rank has every result. Timed.
  virtual void reduce(std::span<const TensorValues> tensors) = 0;

  /// Throws std::runtime_error naming the first value that is not what it must be after the first
  /// operation.
  virtual void check(TensorValues tensor, std::size_t index) = 0;

  /// Called again and again while this rank waits for the others outside an operation: a library
  /// without threads of its own may still owe them packets.
  virtual void make_progress() {}

  /// Adds what the library has counted so far to a report: numbers only, which never decrease.
  virtual void report(tools::JsonObject&) const {}
};

}  // namespace natagg::bench
