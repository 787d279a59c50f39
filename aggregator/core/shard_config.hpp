// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What the daemon's options decide about a shard.
#pragma once

#include <cstdint>
#include <memory>

#include "aggregator/core/peer.hpp"
#include "proto/authentication.hpp"
#include "proto/kernels.hpp"
#include "proto/packet.hpp"

namespace natagg::aggregator {

struct ShardConfig {
  std::uint16_t index = 0;   // of this shard in its aggregator
  std::uint16_t shards = 1;  // of this aggregator
  std::uint16_t max_jobs = 16;
  std::uint16_t max_workers = 1024;
  std::uint16_t max_window = 256;                // slots a session, a power of two
  std::uint16_t max_values = proto::kMaxValues;  // a packet; bounded by the device's MTU
  Time member_timeout = 1'500'000'000;           // silence after which a member counts as dead
  Time forming_timeout = 1'000'000'000;  // silence after which a rank loses its place while forming
  Time probe_wait = 100'000'000;         // how long a full session waits for multicast to be heard
  std::uint32_t multicast_address = 0;   // first group of the range; job j uses + j % 256; 0: never
  std::uint16_t multicast_port = 0;
  std::uint32_t first_epoch = 1;  // random in production, so that epochs outlive a restart
  std::uint32_t first_sequence = 0xFFFF'FF00;    // near the wrap, so that every job crosses it
  const Kernels* kernels = nullptr;              // nullptr: default_kernels()
  std::shared_ptr<const proto::JobKeys> keys{};  // nullptr: no job is authenticated
  bool jobs_without_key = false;                 // may join where other jobs have keys
  proto::Secret entropy{};  // random in production; what makes sessions' nonces and challenges new
};

}  // namespace natagg::aggregator
