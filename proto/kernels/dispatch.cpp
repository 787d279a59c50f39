// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include <array>
#include <cstdlib>

#include "proto/kernels.hpp"
#include "proto/kernels/implementations.hpp"

namespace natagg {

bool scalar_supported() {
  return true;
}

#if defined(__x86_64__)
bool avx2_supported() {
  // Every CPU with AVX2 has F16C, for which clang's builtin has no name.
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

bool avx512_supported() {
  return avx2_supported() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq");
}
#endif

std::span<const Kernels> all_kernels() {
#if defined(__x86_64__)
  static const std::array kAll{kAvx512Kernels, kAvx2Kernels, kScalarKernels};
#else
  static const std::array kAll{kScalarKernels};
#endif
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
