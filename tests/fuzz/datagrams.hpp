// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// Datagrams made from a fuzzer's bytes: right in every field but those that the input changes.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "input.hpp"
#include "proto/packet.hpp"

namespace natagg::fuzz {

using Datagram = std::vector<std::byte>;

/// `header`, then `body`, then zeros up to `size` bytes in all.
template <typename Body>
void write(Datagram& datagram, const proto::Header& header, const Body& body,
           std::size_t size = 0) {
  datagram.assign(std::max(sizeof(header) + sizeof(body), size), std::byte{0});
  std::memcpy(datagram.data(), &header, sizeof(header));
  std::memcpy(datagram.data() + sizeof(header), &body, sizeof(body));
}

inline void write(Datagram& datagram, const proto::Header& header, std::size_t size = 0) {
  datagram.assign(std::max(sizeof(header), size), std::byte{0});
  std::memcpy(datagram.data(), &header, sizeof(header));
}

/// What the input may do to a datagram: as it is in half the cases, else some bytes changed, or cut
/// short, or made longer.
inline void mutate(Datagram& datagram, Input& input) {
  const std::size_t what = input.below(8);
  if (what < 4) return;
  if (what == 4 && !datagram.empty()) {
    datagram.resize(input.take(2) % datagram.size());
  } else if (what == 5) {
    datagram.resize(datagram.size() + input.byte(), static_cast<std::byte>(input.byte()));
  } else {
    for (std::size_t n = what - 5; n > 0 && !datagram.empty(); --n) {
      // Where the fields are, rather than in the padding.
      const std::size_t at = input.byte() % std::min<std::size_t>(datagram.size(), 96);
      datagram[at] ^= static_cast<std::byte>(input.byte());
    }
  }
}

}  // namespace natagg::fuzz
