// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "aggregator/io/pools.hpp"

#include <fmt/format.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "aggregator/io/eal.hpp"
#include "aggregator/io/envelope.hpp"

namespace natagg::aggregator::io {
namespace {

constexpr std::uint32_t kCache = 256;  // a lcore's; a mempool may hold 1.5 times that
// Left for the rings and queues that are made after the pools.
constexpr std::size_t kReserve = 2 << 20;
static_assert(sizeof(HandedOver) % RTE_MBUF_PRIV_ALIGN == 0);

std::uint32_t per_lcore(const PoolNeeds& needs) {
  return needs.lcores * (kCache * 3 / 2 + (1 + needs.ports) * kBurst);
}

std::uint32_t wanted(const PoolNeeds& needs) {
  const std::uint32_t inboxes = needs.lcores > 1 ? needs.lcores * kRingSize : 0;
  const std::uint32_t outboxes = needs.outboxes * kRingSize;
  return std::bit_ceil(needs.received + needs.sent + inboxes + outboxes + per_lcore(needs) + 1) - 1;
}

std::uint32_t least(const PoolNeeds& needs) {
  return needs.received + per_lcore(needs);
}

rte_mempool* create(const char* name, std::uint32_t count, std::uint32_t room, int socket) {
  return rte_pktmbuf_pool_create(name, count, kCache, sizeof(HandedOver),
                                 static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + room), socket);
}

}  // namespace

Pools::Pools(const PoolNeeds& needs, int socket) : kept_(needs.kept) {
  const std::uint32_t room =
      std::max<std::uint32_t>(RTE_MBUF_DEFAULT_DATAROOM, (needs.frame_bytes + 63) / 64 * 64);
  if (room > UINT16_MAX - RTE_PKTMBUF_HEADROOM) {
    throw std::runtime_error(fmt::format("frames of {} bytes do not fit a buffer", room));
  }
  void* const reserve = rte_malloc_socket("reserve", kReserve, 0, socket);
  const std::uint32_t full = wanted(needs);
  std::uint32_t count = full;
  for (; count >= least(needs) && !frames_; count = count / 2) {
    headers_.reset(create("natagg-headers", count, 64, socket));
    if (headers_) frames_.reset(create("natagg-frames", count, room, socket));
    if (!frames_) headers_.reset();
  }
  rte_free(reserve);
  if (!frames_) {
    throw std::runtime_error(fmt::format(
        "{}: at least {} buffers of {} bytes are needed; give DPDK more memory (-m MB with "
        "--no-huge, else more hugepages on NUMA node {}), fewer lcores or a smaller MTU",
        describe_failure("rte_pktmbuf_pool_create", "natagg-frames"), least(needs), room, socket));
  }
  if (frames_->size < full) {
    spdlog::warn("pools: {} buffers instead of {}, for want of memory: bursts may be dropped",
                 frames_->size, full);
  }
  spdlog::info("pools: {} buffers of {} bytes on NUMA node {}", frames_->size, room, socket);
}

Pools::~Pools() {
  const unsigned in_use = (kept_ ? 0 : rte_mempool_in_use_count(frames_.get())) +
                          rte_mempool_in_use_count(headers_.get());
  if (in_use != 0) spdlog::warn("pools: {} buffers were not given back", in_use);
}

}  // namespace natagg::aggregator::io
