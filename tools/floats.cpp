// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/floats.hpp"

#include <bit>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "proto/philox.hpp"

namespace natagg::tools {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they are");

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

std::string system_text() {
  return std::generic_category().message(errno);
}

float generated(std::uint64_t data_seed, std::uint32_t rank, std::uint64_t element) {
  const proto::PhiloxCounter words = proto::philox4x32(
      {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32), rank, 0},
      {static_cast<std::uint32_t>(data_seed), static_cast<std::uint32_t>(data_seed >> 32)});
  if (words[0] % 8 == 0) return 0.0F;
  constexpr std::uint32_t bias = 127;
  const std::uint32_t exponent = bias - 4 - words[1] % 40;
  return std::bit_cast<float>((words[2] & 0x807F'FFFF) | exponent << 23);
}

}  // namespace

std::vector<float> read_floats(const std::string& path, std::optional<std::size_t> count) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) fail(path, system_text());
  const auto bytes = static_cast<std::size_t>(file.tellg());
  if (bytes % sizeof(float) != 0) {
    fail(path, std::to_string(bytes) + " bytes are no whole number of float32");
  }
  const std::size_t available = bytes / sizeof(float);
  if (count.value_or(0) > available) {
    fail(path, "has " + std::to_string(available) + " values, not " + std::to_string(*count));
  }
  std::vector<float> values(count.value_or(available));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!file) fail(path, "cannot be read: " + system_text());
  return values;
}

void write_floats(const std::string& path, std::span<const float> values) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) fail(path, system_text());
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
  file.close();
  if (!file) fail(path, "cannot be written: " + system_text());
}

std::vector<float> generate_floats(std::uint64_t data_seed, std::uint32_t rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = generated(data_seed, rank, i);
  return values;
}

}  // namespace natagg::tools
