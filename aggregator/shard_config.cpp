// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/shard_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "aggregator/ipv4_text.hpp"

namespace natagg::aggregator {
namespace {

Time milliseconds(std::uint32_t value) {
  return Time{value} * 1'000'000;
}

const Kernels* choose_kernels(const std::string& name) {
  if (name == "auto") return &default_kernels();
  const Kernels* kernels = find_kernels(name);
  if (kernels == nullptr || !kernels->supported()) {
    throw std::invalid_argument(fmt::format("kernels = {}: this CPU does not have them", name));
  }
  return kernels;
}

}  // namespace

ShardConfig shard_config(const Options& options, std::uint16_t index, std::uint16_t shards,
                         std::uint32_t mtu, std::uint32_t first_epoch) {
  if (options.port + shards - 1 > 65535) {
    throw std::invalid_argument(fmt::format("port = {}: {} shards need ports up to {}",
                                            options.port, shards, options.port + shards - 1));
  }
  const std::size_t fitting = proto::values_for_mtu(mtu);
  if (fitting == 0) {
    throw std::invalid_argument(
        fmt::format("mtu = {}: too small for {} values a packet", mtu, proto::kMinValues));
  }
  const bool multicast = options.multicast == "auto";
  return {
      .index = index,
      .shards = shards,
      .max_jobs = static_cast<std::uint16_t>(options.max_jobs),
      .max_workers = static_cast<std::uint16_t>(options.max_workers),
      .max_window = static_cast<std::uint16_t>(options.max_window),
      .max_values = static_cast<std::uint16_t>(std::min<std::size_t>(options.max_values, fitting)),
      .member_timeout = milliseconds(options.member_timeout_ms),
      .forming_timeout = milliseconds(options.forming_timeout_ms),
      .probe_wait = milliseconds(options.probe_wait_ms),
      .multicast_address = multicast ? parse_ipv4(options.multicast_group).value_or(0) : 0,
      .multicast_port = static_cast<std::uint16_t>(
          options.multicast_port != 0 ? options.multicast_port : options.port),
      .first_epoch = first_epoch,
      .first_sequence = ShardConfig{}.first_sequence,
      .kernels = choose_kernels(options.kernels),
      .jobs_without_key = options.jobs_without_key == "accept",
  };
}

}  // namespace natagg::aggregator
