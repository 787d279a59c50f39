// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/error.hpp"

#include <system_error>

namespace natagg::worker {

void throw_system_error(int code, std::string_view call, std::string_view remedy) {
  std::string text{call};
  text += ": " + std::generic_category().message(code);
  if (!remedy.empty()) text.append("; ").append(remedy);
  throw Error(NATAGG_SYSTEM_ERROR, text);
}

}  // namespace natagg::worker
