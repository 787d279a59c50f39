// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "keys.hpp"

#include <vector>

namespace natagg::fuzz {

const proto::JobKey& job_key(std::uint32_t job, bool right) {
  static std::map<std::pair<std::uint32_t, bool>, proto::JobKey> made;
  const auto found = made.find({job, right});
  if (found != made.end()) return found->second;
  const std::vector bytes(proto::kMinKeyBytes, static_cast<std::byte>(right ? job : job + 100));
  return made.emplace(std::pair{job, right}, proto::JobKey{job, bytes}).first->second;
}

proto::Secret entropy(std::uint8_t which) {
  proto::Secret secret;
  secret.fill(which);
  return secret;
}

}  // namespace natagg::fuzz
