// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/carrier_network.hpp"

#include <string>
#include <utility>

#include "proto/packet.hpp"
#include "tools/trace/trace_reader.hpp"

namespace natagg::tools {

CarrierNetwork::CarrierNetwork(worker::Carrier carrier)
    : carrier_(std::move(carrier)), waiting_(kBatch) {}

std::size_t CarrierNetwork::open(const proto::Endpoint& to) {
  ways_.push_back(to);
  return ways_.size() - 1;
}

void CarrierNetwork::send(std::size_t way, std::span<const std::byte> datagram) {
  const std::size_t packet = datagram.size() + proto::kIpUdpBytes;
  if (packet > carrier_.mtu) {
    throw TraceError("the trace has packets of " + std::to_string(packet) +
                     " bytes, the transport carries " + std::to_string(carrier_.mtu));
  }
  if (waiting_count_ == kBatch) flush();
  Waiting& waiting = waiting_[waiting_count_++];
  waiting.to = ways_[way];
  waiting.datagram.assign(datagram.begin(), datagram.end());
}

void CarrierNetwork::flush() {
  outgoing_.clear();
  for (std::size_t i = 0; i < waiting_count_; ++i) {
    outgoing_.push_back({.to = waiting_[i].to, .datagram = waiting_[i].datagram});
  }
  waiting_count_ = 0;
  carrier_.transport->send(outgoing_);
}

void CarrierNetwork::receive(std::int64_t nanoseconds, const OnDatagram& on_datagram) {
  flush();
  if (nanoseconds > 0) carrier_.transport->wait(nanoseconds);
  for (auto batch = carrier_.transport->receive(); !batch.empty();
       batch = carrier_.transport->receive()) {
    for (const worker::Incoming& incoming : batch) on_datagram(incoming.datagram);
  }
}

void CarrierNetwork::close() {
  flush();
  ways_.clear();
}

}  // namespace natagg::tools
