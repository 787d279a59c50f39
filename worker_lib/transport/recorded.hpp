// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A transport whose datagrams are recorded, as they are given to it and as they come out of it.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "worker_lib/transport/recording.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

class RecordedTransport final : public Transport {
 public:
  /// `track` outlives this. `self` is where the datagrams come from; what arrives is recorded as
  /// sent to it, also where a group received it.
  RecordedTransport(std::unique_ptr<Transport> inner, Recording::Track& track,
                    const proto::Endpoint& self)
      : inner_(std::move(inner)), track_(track), self_(self) {}

  bool join(const proto::Endpoint& group) override { return inner_->join(group); }

  void send(std::span<const Outgoing> datagrams) override {
    // Before the answers, in any case.
    const std::int64_t time = now();
    for (const Outgoing& out : datagrams) track_.add(time, self_, out.to, out.datagram);
    inner_->send(datagrams);
  }

  [[nodiscard]] std::span<const Incoming> receive() override {
    const std::span<const Incoming> batch = inner_->receive();
    if (batch.empty()) return batch;
    const std::int64_t time = now();
    for (const Incoming& in : batch) track_.add(time, in.source, self_, in.datagram);
    return batch;
  }

  void wait(Time nanoseconds) override { inner_->wait(nanoseconds); }
  void wake() override { inner_->wake(); }

  [[nodiscard]] TransportStats stats() const override {
    TransportStats stats = inner_->stats();
    stats.recorded = track_.recorded();
    stats.unrecorded = track_.unrecorded();
    stats.record_error = track_.error();
    return stats;
  }

 private:
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  std::unique_ptr<Transport> inner_;
  Recording::Track& track_;
  proto::Endpoint self_;
};

}  // namespace natagg::worker
