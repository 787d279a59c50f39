// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What dispatch.cpp chooses from. The tables are constants, so that nothing compiled for an
// instruction set runs before supported() has said that it may; supported() is therefore
// defined with dispatch, not with the kernels.
#pragma once

#include "proto/kernels.hpp"

namespace natagg {

extern const Kernels kScalarKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

bool scalar_supported();
bool avx2_supported();
bool avx512_supported();

}  // namespace natagg
