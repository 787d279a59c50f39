// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One JSON object on one line.
#pragma once

#include <concepts>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace natagg::tools {

/// Its members are in the order of calls.
class JsonObject {
 public:
  void add(std::string_view name, const std::string& text);
  void add(std::string_view name, double number);
  void add(std::string_view name, std::integral auto number) { begin(name) << number; }
  void add(std::string_view name, const std::vector<std::uint64_t>& numbers);
  void add(std::string_view name, const std::vector<std::vector<std::uint64_t>>& lists);
  void add(std::string_view name, const JsonObject& object) { begin(name) << object.str(); }

  [[nodiscard]] std::string str() const;

 private:
  std::ostream& begin(std::string_view name);

  std::ostringstream members_;
};

}  // namespace natagg::tools
