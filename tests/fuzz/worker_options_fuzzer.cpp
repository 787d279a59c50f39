// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A worker's options of any numbers and texts are refused in words that begin with the option's
// name, or a stream can be made of them.

#include <string>

#include "input.hpp"
#include "worker_lib/error.hpp"
#include "worker_lib/options.hpp"

namespace natagg::fuzz {
namespace {

std::uint32_t number(Input& input, std::uint32_t usual) {
  const std::size_t kind = input.below(8);
  if (kind < 5) return usual;
  if (kind == 5) return input.byte();
  return static_cast<std::uint32_t>(input.take(4)) >> (kind == 6 ? 16 : 0);
}

double probability(Input& input) {
  const std::size_t kind = input.below(4);
  if (kind != 0) return static_cast<double>(kind) * 0.25;
  const std::uint64_t bits = input.take(8);
  double value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

std::string addresses(Input& input) {
  std::string text;
  for (std::size_t n = 1 + input.below(4); n > 0; --n) {
    const std::size_t kind = input.byte();
    if (!text.empty()) text += ',';
    text += "10.0." + std::to_string(kind % 4) + "." + std::to_string(1 + kind / 64);
    // One by one: GCC 12 sees an overlap in "literal" + temporary (its bug 105651).
    if ((kind & 4) != 0) text.append(":").append(std::to_string(input.take(2)));
    if ((kind & 0x38) == 0) {
      for (const std::uint8_t byte : input.bytes(kind % 8)) text += static_cast<char>(byte);
    }
  }
  return text;
}

/// The list as it would be written, which means the same.
void check_list(const std::vector<proto::Endpoint>& endpoints) {
  std::string text;
  for (const proto::Endpoint& endpoint : endpoints) {
    if (!text.empty()) text += ',';
    text += to_string(endpoint);
  }
  require(worker::parse_aggregators(text) == endpoints, "a list of aggregators can be written");
}

void make_stream(const worker::WorkerConfig& made) {
  worker::StreamConfig config = made.stream;
  require(config.instance != 0 && config.in_flight >= 1, "defaults make a stream");
  const worker::Stream stream(config, 0);
  require(stream.state() == worker::Stream::State::kConnecting, "a stream begins to connect");
  require(made.connect_timeout > 0 && made.operation_timeout > 0, "nothing waits for ever");
  require(made.transmit_loss >= 0 && made.receive_loss <= 1, "losses are probabilities");
}

}  // namespace
}  // namespace natagg::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace natagg;
  fuzz::Input input({data, size});
  const std::string list = fuzz::addresses(input);
  const auto name = input.bytes(input.below(20));
  const std::string local(name.begin(), name.end());
  natagg_options options = worker::default_options();
  options.aggregators = input.below(16) == 0 ? nullptr : list.c_str();
  options.local = local.c_str();
  options.world = fuzz::number(input, 4);
  options.rank = fuzz::number(input, 3);
  options.shift = static_cast<std::int32_t>(fuzz::number(input, 0));
  options.rounding = static_cast<natagg_rounding>(fuzz::number(input, 1) & 3);
  options.values_per_packet = fuzz::number(input, 0) & (input.below(2) == 0 ? ~127U : ~0U);
  options.window = input.below(2) == 0 ? 1U << input.below(18) : fuzz::number(input, 256);
  options.connect_timeout_ms = fuzz::number(input, 1000);
  options.operation_timeout_ms = fuzz::number(input, 1000);
  options.heartbeat_ms = fuzz::number(input, 100);
  options.aggregator_timeout_ms = fuzz::number(input, 1500);
  options.receive_buffer_bytes = fuzz::number(input, 0);
  options.transmit_loss = fuzz::probability(input);
  options.receive_loss = fuzz::probability(input);
  options.busy_poll_us = fuzz::number(input, 1'000'000);
  options.io_threads = fuzz::number(input, 64);
  try {
    const worker::WorkerConfig config = worker::make_config(options);
    fuzz::check_list(config.stream.aggregators);
    fuzz::make_stream(config);
  } catch (const worker::Error& error) {
    fuzz::require(error.status() == NATAGG_INVALID_ARGUMENT, "a refusal has its status");
    fuzz::require(std::string(error.what()).find(": ") != std::string::npos,
                  "a refusal names its option");
  }
  return 0;
}
