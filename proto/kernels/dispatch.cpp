// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include <array>
#include <cstdlib>

#include "proto/kernels.hpp"
#include "proto/kernels/implementations.hpp"

namespace natagg {

bool scalar_supported() { return true; }

std::span<const Kernels> all_kernels() {
  static const std::array kAll{kScalarKernels};
  return kAll;
}

const Kernels* find_kernels(std::string_view name) {
  for (const Kernels& kernels : all_kernels()) {
    if (kernels.name == name && kernels.supported()) return &kernels;
  }
  return nullptr;
}

const Kernels& default_kernels() {
  static const Kernels& chosen = []() -> const Kernels& {
    if (const char* name = std::getenv("NATAGG_KERNELS"); name != nullptr) {
      if (const Kernels* named = find_kernels(name); named != nullptr) return *named;
    }
    for (const Kernels& kernels : all_kernels()) {
      if (kernels.supported()) return kernels;
    }
    return kScalarKernels;
  }();
  return chosen;
}

}  // namespace natagg
