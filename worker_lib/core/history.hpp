// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// What a worker has sent to one place of the pool, as it was sent, in case the aggregator is lost
// and the chunks must be sent again elsewhere: by then the operation may have finished here and its
// input be overwritten.
//
// Two windows are enough. Let c be the first chunk of which some rank lacks the result. That rank
// has sent no chunk from c + W on, so nobody has the result of one, so nobody has sent any from
// c + 2W on. Where results may be partial, the others go on while the aggregator has room for what
// the rank has missed, and more windows are needed: see section 9 of the specification. In the
// place of what was sent stands the result, if that is partial: nothing but it can make the others'
// bits the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/packet.hpp"

namespace natagg::worker {

class History {
 public:
  struct Entry {
    std::uint64_t operation_id = 0;
    bool answered = false;  // its result has been decoded
    bool partial = false;   // and is kept, with its set of ranks
  };

  /// `window` is a power of two. `rank_set_bytes` is 0 where results are never partial.
  History(std::uint16_t window, std::uint16_t values, std::size_t rank_set_bytes)
      : depth_((rank_set_bytes == 0 ? proto::kKeptWindows : proto::kKeptPartialWindows) *
               std::uint64_t{window}),
        rank_set_bytes_(rank_set_bytes),
        datagram_size_(sizeof(proto::Header) + values + rank_set_bytes),
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
  /// What of the chunk's datagram is in use, when it has `count` values.
  [[nodiscard]] std::span<std::byte> datagram(std::uint64_t number, std::uint16_t count) {
    const std::size_t ranks = entry(number).partial ? rank_set_bytes_ : 0;
    return {datagram(number), sizeof(proto::Header) + count + ranks};
  }

 private:
  std::uint64_t depth_;
  std::size_t rank_set_bytes_;
  std::size_t datagram_size_;
  std::vector<Entry> entries_;
  std::unique_ptr<std::byte[]> datagrams_;  // pages that are not used cost nothing
};

}  // namespace natagg::worker
