// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// encode.csv, recompress.csv, decode.csv and philox.csv.

#include <bit>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <vector>

#include "proto/nat8.hpp"
#include "proto/philox.hpp"
#include "proto/rounding.hpp"
#include "vectors.hpp"

namespace natagg::vectors {
namespace {

using proto::Rounding;
using proto::RoundingKey;

/// std::format is not in this standard library yet.
[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[256];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

unsigned long long wide(std::uint64_t value) {
  return value;
}

/// What a byte's tally counted.
const char* counted(const nat8::Tally& tally) {
  if (tally.clipped != 0) return "clipped";
  if (tally.flushed != 0) return "flushed";
  if (tally.zeros != 0) return "zero";
  if (tally.nans != 0) return "nan";
  if (tally.infs != 0) return "inf";
  return "";
}

constexpr const char* kKeyColumns = "mode,seed,operation,who,element,fraction";

std::string key_text(const RoundingKey& key, std::uint64_t element) {
  return format("%s,%016llx,%u,%u,%llu,%016llx",
                key.mode == Rounding::kNearest ? "nearest" : "stochastic", wide(key.seed),
                key.operation, key.who, wide(element), wide(rounding_fraction(key, element)));
}

struct Draw {
  RoundingKey key;
  std::uint64_t element;
};

/// Draws whose 16 upper bits are far apart, at group borders and beyond 32 bits.
std::vector<Draw> draws() {
  const RoundingKey stochastic{.seed = 0x0123'4567'89AB'CDEF, .operation = 3, .who = 1};
  const RoundingKey aggregator{
      .seed = 0xFFFF'FFFF'FFFF'FFFF, .operation = 0xFFFF'FFFF, .who = 0xFFFF};
  const RoundingKey nearest{.seed = 7, .operation = 2, .who = 5, .mode = Rounding::kNearest};
  return {{stochastic, 0},
          {stochastic, 15},
          {stochastic, 16},
          {stochastic, 127},
          {stochastic, 128},
          {stochastic, 0x1'0000'0000},
          {aggregator, 0x20'0000'0000'0001},
          {nearest, 9}};
}

std::vector<std::uint32_t> float_edges() {
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  using Limits = std::numeric_limits<float>;
  return {bits(0.0F),
          bits(-0.0F),
          bits(1.0F),
          bits(-1.5F),
          bits(1.25F),
          bits(4.0F / 3),
          bits(-0.1F),
          bits(1.9999999F),
          bits(1024.0F),
          0x447F'FFFF,
          0x4480'0001,
          bits(-2048.0F),
          bits(Limits::max()),
          0x2680'0000,
          0x267F'FFFF,
          0x2680'0001,
          0x2640'0000,
          0x2600'0000,
          0x25C0'0000,
          bits(Limits::min()),
          1,
          0x807F'FFFF,
          bits(Limits::infinity()),
          0xFF80'0000,
          0x7FC0'0000,
          0x7F80'0001,
          0xFFFF'FFFF};
}

std::vector<std::uint64_t> double_edges() {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  using Limits = std::numeric_limits<double>;
  return {bits(0.0),
          bits(-0.0),
          bits(1.0),
          bits(-1.5),
          bits(4.0 / 3),
          bits(0.1),
          bits(1024.0),
          0x408F'FFFF'FFFF'FFFF,
          0x4090'0000'0000'0001,
          bits(Limits::max()),
          0x3CD0'0000'0000'0000,
          0x3CCF'FFFF'FFFF'FFFF,
          bits(Limits::min()),
          1,
          0x800F'FFFF'FFFF'FFFF,
          bits(Limits::infinity()),
          0x7FF0'0000'0000'0001,
          0xFFF8'0000'0000'0000};
}

}  // namespace

std::string encode() {
  std::string text = format("type,bits,shift,%s,byte,counted\n", kKeyColumns);
  const auto row = [&text](const char* type, int digits, std::uint64_t bits, auto value, int shift,
                           const Draw& draw) {
    nat8::Tally tally;
    const std::uint8_t byte =
        nat8::encode(value, shift, rounding_fraction(draw.key, draw.element), tally);
    text += format("%s,%0*llx,%d,%s,%02x,%s\n", type, digits, wide(bits), shift,
                   key_text(draw.key, draw.element).c_str(), byte, counted(tally));
  };
  for (const Draw& draw : draws()) {
    for (const std::uint32_t bits : float_edges()) {
      row("float32", 8, bits, std::bit_cast<float>(bits), 0, draw);
    }
    for (const int shift : {-64, -10, 10, 64}) {
      for (const std::uint32_t bits : {0x3FA0'0000U, 0xBDCC'CCCDU, 0x1F00'0001U, 0x0040'0001U}) {
        row("float32", 8, bits, std::bit_cast<float>(bits), shift, draw);
      }
    }
    for (const std::uint64_t bits : double_edges()) {
      row("float64", 16, bits, std::bit_cast<double>(bits), 0, draw);
    }
  }
  return text;
}

std::string recompress() {
  std::string text = format("sum,%s,byte,counted\n", kKeyColumns);
  std::vector<std::int64_t> sums = {0, 3, -3, 1'000'003, -87'654'321};
  for (int power = 0; power < 63; power += power < 60 ? 5 : 1) {
    const std::int64_t sum = std::int64_t{1} << power;
    for (const std::int64_t s : {sum - 1, sum, sum + 1, -sum + 1, -sum, -sum - 1}) {
      sums.push_back(s);
    }
    if (power > 0 && power < 62) {
      const std::int64_t tie = sum + sum / 2;
      for (const std::int64_t s : {tie - 1, tie, -tie, -tie + 1}) sums.push_back(s);
    }
  }
  sums.push_back(std::numeric_limits<std::int64_t>::max());
  sums.push_back(std::numeric_limits<std::int64_t>::min());
  for (const Draw& draw : draws()) {
    for (const std::int64_t sum : sums) {
      nat8::Tally tally;
      const std::uint8_t byte =
          nat8::recompress(sum, rounding_fraction(draw.key, draw.element), tally);
      text += format("%lld,%s,%02x,%s\n", static_cast<long long>(sum),
                     key_text(draw.key, draw.element).c_str(), byte, counted(tally));
    }
  }
  return text;
}

std::string decode() {
  std::string text = "type,byte,shift,divisor,bits\n";
  const auto row = [&text](std::uint8_t byte, int shift, std::uint32_t divisor) {
    const auto single = std::bit_cast<std::uint32_t>(nat8::decode_float(byte, shift, divisor));
    const auto both = std::bit_cast<std::uint64_t>(nat8::decode_double(byte, shift, divisor));
    text += format("float32,%02x,%d,%u,%08x\n", byte, shift, divisor, single);
    text += format("float64,%02x,%d,%u,%016llx\n", byte, shift, divisor, wide(both));
  };
  for (int byte = 0; byte < 256; ++byte) {
    if (nat8::is_valid(static_cast<std::uint8_t>(byte))) row(static_cast<std::uint8_t>(byte), 0, 1);
  }
  for (const int shift : {-64, -7, 0, 64}) {
    for (const std::uint32_t divisor : {2U, 3U, 7U, 9U, 1000U, 65'535U, 0xFFFF'FFFFU}) {
      for (const int byte : {0x00, 0x3C, 0x92, 0x40, 0x41, 0xC1, 0x42}) {
        row(static_cast<std::uint8_t>(byte), shift, divisor);
      }
    }
  }
  return text;
}

std::string philox() {
  std::string text =
      "rounds,counter0,counter1,counter2,counter3,key0,key1,word0,word1,word2,word3\n";
  const auto row = [&text](int rounds, const proto::PhiloxCounter& c, const proto::PhiloxKey& k,
                           const proto::PhiloxCounter& w) {
    text += format("%d,%08x,%08x,%08x,%08x,%08x,%08x,%08x,%08x,%08x,%08x\n", rounds, c[0], c[1],
                   c[2], c[3], k[0], k[1], w[0], w[1], w[2], w[3]);
  };
  const std::uint32_t ones = 0xFFFF'FFFF;
  const std::pair<proto::PhiloxCounter, proto::PhiloxKey> published[] = {
      {{0, 0, 0, 0}, {0, 0}},
      {{ones, ones, ones, ones}, {ones, ones}},
      {{0x243F'6A88, 0x85A3'08D3, 0x1319'8A2E, 0x0370'7344}, {0xA409'3822, 0x299F'31D0}},
  };
  for (const auto& [counter, key] : published) {
    row(7, counter, key, proto::philox4x32<7>(counter, key));
    row(10, counter, key, proto::philox4x32<10>(counter, key));
  }
  for (const Draw& draw : draws()) {
    for (const proto::PhiloxCounter& counter :
         {coarse_counter(draw.key, draw.element), fine_counter(draw.key, draw.element)}) {
      const proto::PhiloxKey key = draw.key.philox_key();
      row(7, counter, key, proto::philox4x32(counter, key));
    }
  }
  return text;
}

}  // namespace natagg::vectors
