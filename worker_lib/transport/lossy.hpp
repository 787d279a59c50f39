// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A transport that loses datagrams at random, the same ones for the same seed: a supported option,
// with which tests and users exercise recovery on the real path.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "proto/loss.hpp"
#include "worker_lib/transport/transport.hpp"

namespace natagg::worker {

class LossyTransport final : public Transport {
 public:
  LossyTransport(std::unique_ptr<Transport> inner, double transmit_loss, double receive_loss,
                 std::uint64_t seed)
      : inner_(std::move(inner)), transmit_(transmit_loss, seed), receive_(receive_loss, ~seed) {}

  bool join(const proto::Endpoint& group) override { return inner_->join(group); }

  void send(std::span<const Outgoing> datagrams) override {
    outgoing_.clear();
    for (const Outgoing& datagram : datagrams) {
      if (!transmit_.draw()) outgoing_.push_back(datagram);
    }
    losses_ += datagrams.size() - outgoing_.size();
    inner_->send(outgoing_);
  }

  [[nodiscard]] std::span<const Incoming> receive() override {
    // A batch that is lost as a whole must not look like the last one; nor must a flood of them
    // keep the caller from sending.
    incoming_.clear();
    for (int i = 0; i < kBatches && incoming_.empty(); ++i) {
      const std::span<const Incoming> batch = inner_->receive();
      if (batch.empty()) return {};
      for (const Incoming& datagram : batch) {
        if (!receive_.draw()) incoming_.push_back(datagram);
      }
      losses_ += batch.size() - incoming_.size();
    }
    return incoming_;
  }

  void wait(Time nanoseconds) override { inner_->wait(nanoseconds); }
  void wake() override { inner_->wake(); }

  [[nodiscard]] TransportStats stats() const override {
    TransportStats stats = inner_->stats();
    stats.injected_losses += losses_;
    return stats;
  }

 private:
  static constexpr int kBatches = 64;

  std::unique_ptr<Transport> inner_;
  proto::Loss transmit_;
  proto::Loss receive_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::uint64_t losses_ = 0;
};

}  // namespace natagg::worker
