// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Where a stream's parts put the datagrams that one transmit() hands out.
#pragma once

#include <cstddef>
#include <span>

#include "worker_lib/core/stream.hpp"

namespace natagg::worker {

class Sink {
 public:
  explicit Sink(std::span<Outgoing> out) : out_(out) {}

  [[nodiscard]] bool full() const { return size_ == out_.size(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  [[nodiscard]] std::size_t room() const { return out_.size() - size_; }

  void add(const proto::Endpoint& to, std::span<const std::byte> datagram,
           bool segmentable = false) {
    out_[size_++] = {.to = to, .datagram = datagram, .segmentable = segmentable};
    bytes_ += datagram.size();
  }

 private:
  std::span<Outgoing> out_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace natagg::worker
