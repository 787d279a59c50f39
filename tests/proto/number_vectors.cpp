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
          {stochastic, 2047},
          {stochastic, 2048},
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

std::vector<std::uint16_t> float16_edges() {
  return {0x0000, 0x8000, 0x3C00, 0xBE00, 0x3D00, 0x3D55, 0x3FFF, 0xAE66,
          0x6400, 0x63FF, 0x6401, 0x7BFF, 0xFBFF, 0x0400, 0x03FF, 0x0001,
          0x8001, 0x0155, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFFFF};
}

std::vector<std::uint16_t> bfloat16_edges() {
  return {0x0000, 0x8000, 0x3F80, 0xBFC0, 0x3FA0, 0x3FAB, 0x3FFF, 0xBDCD, 0x4480,
          0x447F, 0x4481, 0x7F7F, 0xFF7F, 0x2680, 0x267F, 0x2681, 0x2640, 0x2600,
          0x25C0, 0x0080, 0x007F, 0x8001, 0x7F80, 0xFF80, 0x7FC0, 0x7F81, 0xFFFF};
}

}  // namespace

std::string encode() {
  std::string text = format("type,bits,shift,%s,byte,counted\n", kKeyColumns);
  const auto row = [&text](const char* type, int digits, std::uint64_t bits, auto encode_one,
                           int shift, const Draw& draw) {
    nat8::Tally tally;
    const std::uint8_t byte = encode_one(shift, rounding_fraction(draw.key, draw.element), tally);
    text += format("%s,%0*llx,%d,%s,%02x,%s\n", type, digits, wide(bits), shift,
                   key_text(draw.key, draw.element).c_str(), byte, counted(tally));
  };
  const auto single = [&row](std::uint32_t bits, int shift, const Draw& draw) {
    const auto value = std::bit_cast<float>(bits);
    row(
        "float32", 8, bits, [=](auto&&... rest) { return nat8::encode(value, rest...); }, shift,
        draw);
  };
  const auto half = [&row](std::uint16_t bits, int shift, const Draw& draw) {
    row(
        "float16", 4, bits, [=](auto&&... rest) { return nat8::encode_float16(bits, rest...); },
        shift, draw);
  };
  const auto brain = [&row](std::uint16_t bits, int shift, const Draw& draw) {
    row(
        "bfloat16", 4, bits, [=](auto&&... rest) { return nat8::encode_bfloat16(bits, rest...); },
        shift, draw);
  };
  for (const Draw& draw : draws()) {
    for (const std::uint32_t bits : float_edges()) single(bits, 0, draw);
    for (const int shift : {-64, -10, 10, 64}) {
      for (const std::uint32_t bits : {0x3FA0'0000U, 0xBDCC'CCCDU, 0x1F00'0001U, 0x0040'0001U}) {
        single(bits, shift, draw);
      }
    }
    for (const std::uint64_t bits : double_edges()) {
      const auto value = std::bit_cast<double>(bits);
      row(
          "float64", 16, bits, [=](auto&&... rest) { return nat8::encode(value, rest...); }, 0,
          draw);
    }
    for (const std::uint16_t bits : float16_edges()) half(bits, 0, draw);
    for (const std::uint16_t bits : bfloat16_edges()) brain(bits, 0, draw);
    // The window's lower end among float16's denormals and normals, its upper end inside it, and
    // bfloat16's denormals as near as they come.
    for (const int shift : {26, 36, 64, -6}) {
      for (const int bits : {0x0001, 0x0003, 0x03FF, 0x1000, 0x0FFF, 0x9001, 0x5401}) {
        half(static_cast<std::uint16_t>(bits), shift, draw);
      }
    }
    for (const int shift : {-64, 64}) {
      for (const int bits : {0x007F, 0x8040, 0x3FA0, 0x1F01, 0x6481}) {
        brain(static_cast<std::uint16_t>(bits), shift, draw);
      }
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
    const std::string terms = format("%02x,%d,%u", byte, shift, divisor);
    text += format("float32,%s,%08x\n", terms.c_str(), single);
    text += format("float64,%s,%016llx\n", terms.c_str(), wide(both));
    text += format("float16,%s,%04x\n", terms.c_str(), nat8::decode_float16(byte, shift, divisor));
    text +=
        format("bfloat16,%s,%04x\n", terms.c_str(), nat8::decode_bfloat16(byte, shift, divisor));
  };
  for (int byte = 0; byte < 256; ++byte) {
    if (nat8::is_valid(static_cast<std::uint8_t>(byte))) row(static_cast<std::uint8_t>(byte), 0, 1);
  }
  // Where float16 overflows (6) and its smallest denormals are (26 to 30), and bfloat16's (-64).
  for (const int shift : {-64, -7, 0, 6, 26, 30, 64}) {
    for (const std::uint32_t divisor :
         {1U, 2U, 3U, 7U, 9U, 1000U, 10'000U, 65'535U, 0xFFFF'FFFFU}) {
      for (const int byte : {0x00, 0x3C, 0x3B, 0x92, 0x40, 0x41, 0xC1, 0x42}) {
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
         {coarse_counter(draw.key, draw.element, 0), coarse_counter(draw.key, draw.element, 15),
          fine_counter(draw.key, draw.element)}) {
      const proto::PhiloxKey key = draw.key.philox_key();
      row(7, counter, key, proto::philox4x32(counter, key));
    }
  }
  return text;
}

}  // namespace natagg::vectors
