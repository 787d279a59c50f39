// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a worker has sent to one place of the pool, as it was sent, in case the aggregator is lost
// and the chunks must be sent again elsewhere: by then the operation may have finished here and its
// input be overwritten.
//
// Two windows are enough. Let c be the first chunk of which some rank lacks the result. That rank
// has sent no chunk from c + W on, so nobody has the result of one, so nobody has sent any from
// c + 2W on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "proto/packet.hpp"

namespace natagg::worker {

class History {
 public:
  struct Entry {
    std::uint64_t operation_id = 0;
    bool answered = false;  // its result has been decoded
  };

  /// `window` is a power of two.
  History(std::uint16_t window, std::uint16_t values)
      : depth_(2 * std::uint64_t{window}),
        datagram_size_(sizeof(proto::Header) + values),
        entries_(depth_),
        datagrams_(std::make_unique_for_overwrite<std::byte[]>(depth_ * datagram_size_)) {}

  /// How many chunks are kept.
  [[nodiscard]] std::uint64_t depth() const { return depth_; }

  /// Of the chunk of that number, until depth() later ones have been sent.
  [[nodiscard]] Entry& entry(std::uint64_t number) { return entries_[number & (depth_ - 1)]; }
  [[nodiscard]] const Entry& entry(std::uint64_t number) const {
    return entries_[number & (depth_ - 1)];
  }
  [[nodiscard]] std::byte* datagram(std::uint64_t number) {
    return datagrams_.get() + (number & (depth_ - 1)) * datagram_size_;
  }

 private:
  std::uint64_t depth_;
  std::size_t datagram_size_;
  std::vector<Entry> entries_;
  std::unique_ptr<std::byte[]> datagrams_;  // pages that are not used cost nothing
};

}  // namespace natagg::worker
