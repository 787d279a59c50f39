// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// The golden vectors: the same as the code gives now, and each row checked by other means than
// the code that wrote it. NATAGG_VECTORS names their directory.

#include "vectors.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "oracle.hpp"
#include "proto/packet.hpp"

namespace natagg {
namespace {

std::string read_file(std::string_view name) {
  const char* directory = std::getenv("NATAGG_VECTORS");
  if (directory == nullptr) return "NATAGG_VECTORS is not set";
  std::ifstream in(std::string(directory) + '/' + std::string(name), std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> cells;
  std::string cell;
  std::istringstream in(line);
  while (std::getline(in, cell, separator)) cells.push_back(cell);
  return cells;
}

using Row = std::map<std::string, std::string>;

std::vector<Row> read_rows(std::string_view name) {
  std::istringstream in(read_file(name));
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> columns = split(line, ',');
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    std::vector<std::string> cells = split(line, ',');
    cells.resize(columns.size());
    Row row;
    for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

std::uint64_t hexadecimal(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

std::string counted(const nat8::Tally& tally) {
  return tally.clipped != 0   ? "clipped"
         : tally.flushed != 0 ? "flushed"
         : tally.zeros != 0   ? "zero"
         : tally.nans != 0    ? "nan"
         : tally.infs != 0    ? "inf"
                              : "";
}

std::uint64_t expected_fraction(const Row& row) {
  if (row.at("mode") == "nearest") return std::uint64_t{1} << 63;
  return oracle::fraction(
      hexadecimal(row.at("seed")), static_cast<std::uint32_t>(std::stoull(row.at("operation"))),
      static_cast<std::uint16_t>(std::stoull(row.at("who"))), std::stoull(row.at("element")));
}

/// A row's type: what its bits stand for.
double value_of(const std::string& type, std::uint64_t bits) {
  if (type == "float64") return std::bit_cast<double>(bits);
  if (type == "float32") return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
  const auto half = static_cast<std::uint16_t>(bits);
  return type == "float16" ? oracle::from_float16(half) : oracle::from_bfloat16(half);
}

struct TypeFacts {
  oracle::FloatFormat format;
  std::uint64_t quiet_nan;
};
const std::map<std::string, TypeFacts> kTypes = {
    {"float32", {oracle::kFloat32, 0x7FC0'0000}},
    {"float64", {oracle::kFloat64, 0x7FF8'0000'0000'0000}},
    {"float16", {oracle::kFloat16, 0x7E00}},
    {"bfloat16", {oracle::kBfloat16, 0x7FC0}},
};

TEST(Vectors, FilesHoldWhatTheCodeGives) {
  for (const vectors::File& file : vectors::kFiles) {
    EXPECT_EQ(read_file(file.name), file.text())
        << file.name << " and the code differ; see natagg-make-vectors";
  }
}

TEST(Vectors, EncodeAgreesWithTheDefinition) {
  const std::vector<Row> rows = read_rows("encode.csv");
  EXPECT_GT(rows.size(), 1000U);
  for (const Row& row : rows) {
    const std::uint64_t bits = hexadecimal(row.at("bits"));
    const double value = value_of(row.at("type"), bits);
    const std::uint64_t fraction = expected_fraction(row);
    EXPECT_EQ(hexadecimal(row.at("fraction")), fraction) << row.at("element");
    const auto outcome = oracle::encode(value, std::stoi(row.at("shift")), fraction);
    EXPECT_EQ(hexadecimal(row.at("byte")), outcome.byte) << row.at("type") << ' ' << row.at("bits");
    EXPECT_EQ(row.at("counted"), counted(outcome.tally)) << row.at("bits");
  }
}

TEST(Vectors, RecompressAgreesWithTheDefinition) {
  const std::vector<Row> rows = read_rows("recompress.csv");
  EXPECT_GT(rows.size(), 500U);
  for (const Row& row : rows) {
    const std::uint64_t fraction = expected_fraction(row);
    EXPECT_EQ(hexadecimal(row.at("fraction")), fraction) << row.at("element");
    const auto outcome = oracle::recompress(std::stoll(row.at("sum")), fraction);
    EXPECT_EQ(hexadecimal(row.at("byte")), outcome.byte) << row.at("sum");
    EXPECT_EQ(row.at("counted"), counted(outcome.tally)) << row.at("sum");
  }
}

TEST(Vectors, DecodeAgreesWithTheDefinition) {
  const std::vector<Row> rows = read_rows("decode.csv");
  EXPECT_GT(rows.size(), 2000U);
  for (const Row& row : rows) {
    const TypeFacts& type = kTypes.at(row.at("type"));
    const std::uint64_t bits = hexadecimal(row.at("bits"));
    const double value = value_of(row.at("type"), bits);
    const std::uint64_t byte = hexadecimal(row.at("byte"));
    if (byte == 0x40) {
      EXPECT_EQ(bits, 0U);
    } else if (byte == 0x42) {
      EXPECT_EQ(bits, type.quiet_nan);
    } else if ((byte & 0x40) != 0) {
      EXPECT_EQ(value, byte == 0x41 ? HUGE_VAL : -HUGE_VAL);
    } else {
      EXPECT_EQ(std::signbit(value), (byte & 0x80) != 0);
      const int exponent = static_cast<int>(byte & 0x3F) - 50 + std::stoi(row.at("shift"));
      EXPECT_TRUE(oracle::is_rounded_quotient(
          std::fabs(value), exponent, static_cast<std::uint32_t>(std::stoul(row.at("divisor"))),
          type.format))
          << row.at("type") << ' ' << row.at("byte") << " / " << row.at("divisor");
    }
  }
}

/// specification.md's byte table once more: each field's name and width in bytes, in order.
using Layout = std::vector<std::pair<const char*, std::size_t>>;

const Layout kHeader = {{"magic", 2},     {"version", 1}, {"type", 1},        {"job", 4},
                        {"epoch", 4},     {"rank", 2},    {"slot", 2},        {"sequence", 4},
                        {"operation", 4}, {"element", 8}, {"fingerprint", 8}, {"count", 2},
                        {"shift", 1},     {"flags", 1}};

const std::map<std::string, Layout> kBodies = {
    {"hello", {{"instance", 8}}},
    {"offer",
     {{"instance", 8}, {"shards", 2}, {"max_values", 2}, {"max_window", 2}, {"max_workers", 2}}},
    {"join",
     {{"instance", 8},
      {"seed", 8},
      {"members", 8},
      {"world", 2},
      {"values", 2},
      {"window", 2},
      {"shard", 2},
      {"shards", 2},
      {"rounding", 1},
      {"flags", 1},
      {"resume", 4},
      {"held", 4},
      {"moves", 2},
      {"stragglers", 2},
      {"quorum", 2},
      {"reserved", 2}}},
    {"welcome",
     {{"instance", 8},
      {"members", 8},
      {"first_sequence", 4},
      {"multicast_address", 4},
      {"multicast_port", 2},
      {"values", 2},
      {"window", 2},
      {"joined", 2},
      {"missing", 2},
      {"shard", 2},
      {"moves", 2},
      {"state", 1},
      {"reserved", 1}}},
    {"challenge", {{"instance", 8}}},
    {"refuse",
     {{"instance", 8}, {"yours", 8}, {"ours", 8}, {"reason", 1}, {"reserved", 1}, {"shard", 2}}},
    {"leave",
     {{"fingerprint", 8},
      {"other_fingerprint", 8},
      {"operation", 4},
      {"other_operation", 4},
      {"rank", 2},
      {"other_rank", 2},
      {"reason", 1}}},
    {"heartbeat", {}},
    {"probe", {}},
    {"pending", {{"missing", 2}, {"missing_count", 2}}},
    {"nack", {{"lacking", 8}}},
    {"abort",
     {{"fingerprint", 8},
      {"other_fingerprint", 8},
      {"operation", 4},
      {"other_operation", 4},
      {"rank", 2},
      {"other_rank", 2},
      {"reason", 1},
      {"cause", 1}}},
    {"move", {{"members", 8}, {"shard", 2}, {"moves", 2}}},
};

/// The big-endian numbers of `layout` in a datagram's hexadecimal text, from byte `offset` on.
Row parse(const std::string& datagram, std::size_t offset, const Layout& layout) {
  Row row;
  for (const auto& [name, width] : layout) {
    const std::uint64_t value = hexadecimal(datagram.substr(2 * offset, 2 * width));
    row[name] = std::string(name) == "shift" ? std::to_string(static_cast<std::int8_t>(value))
                                             : std::to_string(value);
    offset += width;
  }
  return row;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(hexadecimal(text.substr(i, 2))));
  }
  return bytes;
}

TEST(Vectors, EveryHeaderFieldStandsWhereTheTableSays) {
  const std::vector<Row> rows = read_rows("packets.csv");
  EXPECT_GT(rows.size(), 12U);
  for (const Row& row : rows) {
    for (const auto& [name, value] : parse(row.at("datagram"), 0, kHeader)) {
      EXPECT_EQ(row.at(name), value) << row.at("name") << ' ' << name;
    }
  }
}

TEST(Vectors, EveryBodyFieldStandsWhereTheTableSays) {
  std::size_t bodies = 0;
  for (const Row& row : read_rows("packets.csv")) {
    const auto layout = kBodies.find(row.at("name"));
    if (layout == kBodies.end()) {
      // DATA and RESULT: just the values. PARTIAL: a set of ranks, here of two bytes, after them.
      const std::size_t ranks = row.at("name") == "partial" ? 2 : 0;
      EXPECT_EQ(row.at("datagram").size(), 2 * (44 + std::stoul(row.at("count")) + ranks));
      continue;
    }
    ++bodies;
    const Row parsed = parse(row.at("datagram"), 44, layout->second);
    std::size_t fields = 0;
    for (const std::string& field : split(row.at("body"), ';')) {
      const std::vector<std::string> pair = split(field, '=');
      EXPECT_EQ(parsed.at(pair[0]), pair[1]) << row.at("name") << ' ' << pair[0];
      ++fields;
    }
    EXPECT_EQ(fields, layout->second.size()) << row.at("name");
  }
  EXPECT_EQ(bodies, kBodies.size());
}

TEST(Vectors, EveryPacketIsValidAndNamedByItsType) {
  for (const Row& row : read_rows("packets.csv")) {
    const std::vector<std::byte> datagram = bytes_of(row.at("datagram"));
    EXPECT_EQ(proto::validate(datagram), proto::Reject::kNone) << row.at("name");
    std::string type(proto::to_string(proto::read_header(datagram).type));
    for (char& c : type) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(row.at("name").substr(0, type.size()), type);
  }
}

}  // namespace
}  // namespace natagg
