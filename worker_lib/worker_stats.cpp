// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "worker_lib/worker_stats.hpp"

#include <algorithm>

namespace natagg::worker {
namespace {

void add(StreamStats& sum, const StreamStats& lane) {
  sum.data_packets += lane.data_packets;
  sum.retransmissions += lane.retransmissions;
  sum.result_packets += lane.result_packets;
  sum.duplicate_results += lane.duplicate_results;
  sum.rejected_packets += lane.rejected_packets;
  sum.bytes_sent += lane.bytes_sent;
  sum.bytes_received += lane.bytes_received;
  sum.multicast_results += lane.multicast_results;
  sum.resumed_sessions += lane.resumed_sessions;
  sum.smoothed_rtt = std::max(sum.smoothed_rtt, lane.smoothed_rtt);
  sum.encoded += lane.encoded;
  sum.window = std::min(sum.window, lane.window);
  sum.segmentation = std::max(sum.segmentation, lane.segmentation);
}

void add(TransportStats& sum, const TransportStats& lane) {
  sum.kernel_drops += lane.kernel_drops;
  sum.send_failures += lane.send_failures;
  sum.injected_losses += lane.injected_losses;
  if (sum.last_send_error == 0) sum.last_send_error = lane.last_send_error;
  sum.segmented += lane.segmented;
  sum.merged += lane.merged;
  if (sum.segmentation_error == 0) sum.segmentation_error = lane.segmentation_error;
  sum.recorded += lane.recorded;
  sum.unrecorded += lane.unrecorded;
  if (sum.record_error == 0) sum.record_error = lane.record_error;
}

}  // namespace

void add(WorkerStats& sum, const WorkerStats& lane) {
  add(sum.stream, lane.stream);
  add(sum.transport, lane.transport);
  sum.receive_buffer_bytes += lane.receive_buffer_bytes;
  sum.in_flight += lane.in_flight;
  sum.groups += lane.groups;
  sum.io_threads += lane.io_threads;
}

}  // namespace natagg::worker
