// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The exception of everything below the C interface: a status, the rank at fault, and a text.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "natagg/status.h"

namespace natagg::worker {

class Error : public std::runtime_error {
 public:
  Error(natagg_status status, const std::string& message, int rank = -1)
      : std::runtime_error(message), status_(status), rank_(rank) {}

  [[nodiscard]] natagg_status status() const { return status_; }
  [[nodiscard]] int rank() const { return rank_; }

 private:
  natagg_status status_;
  int rank_;
};

/// Throws the NATAGG_SYSTEM_ERROR of a failed system call: "bind(10.0.0.9): Cannot assign
/// requested address; <remedy>". `call` names the call and its object, `code` is its errno.
[[noreturn]] void throw_system_error(int code, std::string_view call, std::string_view remedy);

}  // namespace natagg::worker
