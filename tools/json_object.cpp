// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/json_object.hpp"

#include <iomanip>

namespace natagg::tools {
namespace {

std::string quoted(std::string_view text) {
  std::ostringstream out;
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out << "\\u" << std::hex << std::setw(4) << std::setfill('0') << static_cast<int>(c);
    } else {
      out << c;
    }
  }
  out << '"';
  return out.str();
}

void write_list(std::ostream& out, const std::vector<std::uint64_t>& numbers) {
  out << '[';
  const char* separator = "";
  for (const std::uint64_t number : numbers) {
    out << separator << number;
    separator = ", ";
  }
  out << ']';
}

}  // namespace

void JsonObject::add(std::string_view name, const std::string& text) {
  begin(name) << quoted(text);
}

void JsonObject::add(std::string_view name, double number) {
  begin(name) << number;
}

void JsonObject::add(std::string_view name, const std::vector<std::uint64_t>& numbers) {
  write_list(begin(name), numbers);
}

void JsonObject::add(std::string_view name, const std::vector<std::vector<std::uint64_t>>& lists) {
  std::ostream& out = begin(name) << '[';
  const char* separator = "";
  for (const auto& list : lists) {
    out << separator;
    write_list(out, list);
    separator = ", ";
  }
  out << ']';
}

std::string JsonObject::str() const {
  return members_.str().empty() ? "{}" : members_.str() + '}';
}

std::ostream& JsonObject::begin(std::string_view name) {
  return members_ << (members_.tellp() > 0 ? ", " : "{") << quoted(name) << ": ";
}

}  // namespace natagg::tools
