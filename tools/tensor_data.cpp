// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/tensor_data.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
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

/// A binary format, and how many of its exponents the generated values have.
struct Format {
  int fraction_bits;
  std::uint32_t bias;
  std::uint32_t exponents;
};

Format format_of(DataType type) {
  constexpr std::uint32_t exponents = 40;
  switch (type) {
    case DataType::kFloat32: return {23, 127, exponents};
    case DataType::kFloat64: return {52, 1023, exponents};
    case DataType::kFloat16: return {10, 15, 12};
    case DataType::kBfloat16: return {7, 127, exponents};
  }
  return {};
}

/// The bits of a value.
std::uint64_t generated(DataType type, std::uint64_t data_seed, std::uint32_t rank,
                        std::uint64_t element) {
  constexpr std::uint32_t largest = 4;  // 2^-4
  const proto::PhiloxCounter words = proto::philox4x32(
      {static_cast<std::uint32_t>(element), static_cast<std::uint32_t>(element >> 32), rank, 0},
      {static_cast<std::uint32_t>(data_seed), static_cast<std::uint32_t>(data_seed >> 32)});
  if (words[0] % 8 == 0) return 0;
  const Format format = format_of(type);
  const std::uint64_t sign = words[0] >> 31;
  const std::uint64_t exponent = format.bias - largest - words[1] % format.exponents;
  const std::uint64_t random = std::uint64_t{words[3]} << 32 | words[2];
  const std::uint64_t fraction = random & ((std::uint64_t{1} << format.fraction_bits) - 1);
  return sign << (8 * size_of(type) - 1) | exponent << format.fraction_bits | fraction;
}

}  // namespace

Tensor read_tensor(const std::string& path, DataType type, std::optional<std::size_t> count) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) fail(path, system_text());
  const auto bytes = static_cast<std::size_t>(file.tellg());
  if (bytes % size_of(type) != 0) {
    fail(path,
         std::to_string(bytes) + " bytes are no whole number of " + std::string(type_name(type)));
  }
  const std::size_t available = bytes / size_of(type);
  if (count.value_or(0) > available) {
    fail(path, "has " + std::to_string(available) + " values, not " + std::to_string(*count));
  }
  Tensor tensor(type, count.value_or(available));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(tensor.bytes().data()),
            static_cast<std::streamsize>(tensor.bytes().size()));
  if (!file) fail(path, "cannot be read: " + system_text());
  return tensor;
}

void write_tensor(const std::string& path, const Tensor& tensor) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) fail(path, system_text());
  file.write(reinterpret_cast<const char*>(tensor.bytes().data()),
             static_cast<std::streamsize>(tensor.bytes().size()));
  file.close();
  if (!file) fail(path, "cannot be written: " + system_text());
}

Tensor generate_tensor(DataType type, std::uint64_t data_seed, std::uint32_t rank,
                       std::size_t count) {
  Tensor tensor(type, count);
  std::byte* out = tensor.bytes().data();
  for (std::size_t i = 0; i < count; ++i, out += size_of(type)) {
    const std::uint64_t bits = generated(type, data_seed, rank, i);
    std::memcpy(out, &bits, size_of(type));  // the low bytes, on this little-endian machine
  }
  return tensor;
}

}  // namespace natagg::tools
