// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/allreduce_summary.hpp"

#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string_view>
#include <system_error>

#include "tools/json_object.hpp"

namespace natagg::tools {
namespace {

std::string hex(std::uint64_t number) {
  std::ostringstream text;
  text << std::hex << std::setw(16) << std::setfill('0') << number;
  return text.str();
}

void add_statistics(JsonObject& json, const natagg_statistics& s) {
  json.add("data_packets", s.data_packets);
  json.add("retransmissions", s.retransmissions);
  json.add("result_packets", s.result_packets);
  json.add("duplicate_results", s.duplicate_results);
  json.add("rejected_packets", s.rejected_packets);
  json.add("multicast_results", s.multicast_results);
  json.add("bytes_sent", s.bytes_sent);
  json.add("bytes_received", s.bytes_received);
  json.add("kernel_drops", s.kernel_drops);
  json.add("send_failures", s.send_failures);
  json.add("injected_losses", s.injected_losses);
  json.add("values_clipped", s.values_clipped);
  json.add("values_flushed", s.values_flushed);
  json.add("values_zero", s.values_zero);
  json.add("values_inf", s.values_inf);
  json.add("values_nan", s.values_nan);
  json.add("round_trip_ns", s.round_trip_ns);
  json.add("receive_buffer_bytes", s.receive_buffer_bytes);
  json.add("packets_in_flight", std::uint64_t{s.packets_in_flight});
  json.add("mtu", std::uint64_t{s.mtu});
  json.add("values_per_packet", std::uint64_t{s.values_per_packet});
  json.add("window", std::uint64_t{s.window});
  json.add("shards", std::uint64_t{s.shards});
  json.add("multicast_groups", std::uint64_t{s.multicast_groups});
  json.add("io_threads", std::uint64_t{s.io_threads});
  json.add("gso", std::string(natagg_gso_string(s.gso)));
  json.add("gso_packets", s.gso_packets);
  json.add("gro_packets", s.gro_packets);
  json.add("recorded_packets", s.recorded_packets);
  json.add("unrecorded_packets", s.unrecorded_packets);
  json.add("record_error", std::int64_t{s.record_error});
}

/// Each after `before`.
std::string missing_ranks(const natagg_partial& partial, const char* before) {
  std::string text;
  for (std::size_t rank = 0; rank < 64 * std::size(partial.missing); ++rank) {
    if ((partial.missing[rank / 64] >> (rank % 64) & 1) != 0) {
      text.append(before).append(std::to_string(rank));
    }
  }
  return text;
}

void add_partial(JsonObject& json, const natagg_partial& partial) {
  json.add("chunks", partial.chunks);
  json.add("partial_chunks", partial.partial_chunks);
  json.add("missing_ranks", missing_ranks(partial, " "));
  json.add("least_ranks", std::uint64_t{partial.least_ranks});
  json.add("variance_inflation", partial.variance_inflation);
}

}  // namespace

std::string to_text(const AllreduceOptions& options, const AllreduceSummary& summary) {
  const natagg_statistics& statistics = summary.statistics;
  std::ostringstream text;
  text << "rank " << options.worker.rank << " of " << options.worker.world << ": "
       << summary.outcome.operations << (options.average ? " averages of " : " sums of ")
       << summary.count << ' ' << type_name(options.type) << " in " << std::setprecision(4)
       << summary.outcome.seconds << " s, sent " << statistics.bytes_sent << " B, received "
       << statistics.bytes_received << " B, " << statistics.retransmissions << " retransmissions, "
       << "GSO " << natagg_gso_string(statistics.gso) << ", ";
  if (options.worker.straggler_deadline.count() != 0) {
    const natagg_partial& partial = summary.outcome.partial;
    text << partial.partial_chunks << " of " << partial.chunks << " chunks partial, ";
    if (partial.partial_chunks > 0) {
      text << "without rank" << missing_ranks(partial, " ") << ", " << partial.least_ranks
           << " ranks at least, variance x " << partial.variance_inflation << ", ";
    }
  }
  if (!options.worker.record.empty()) {
    text << statistics.recorded_packets << " packets recorded, ";
    if (statistics.unrecorded_packets > 0) {
      text << statistics.unrecorded_packets << " NOT RECORDED";
      if (statistics.record_error != 0) {
        text << " (" << std::generic_category().message(statistics.record_error) << ")";
      }
      text << ", ";
    }
  }
  if (summary.outcome.checked > 0) text << summary.outcome.checked << " checked, ";
  text << "checksum " << hex(summary.outcome.checksum);
  return text.str();
}

std::string to_json(const AllreduceOptions& options, const AllreduceSummary& summary) {
  JsonObject json;
  json.add("status", std::int64_t{summary.status});
  json.add("status_text", std::string(natagg_status_string(summary.status)));
  json.add("error", summary.error);
  json.add("rank_at_fault", std::int64_t{summary.rank_at_fault});
  json.add("job", std::uint64_t{options.worker.job});
  json.add("rank", std::uint64_t{options.worker.rank});
  json.add("world", std::uint64_t{options.worker.world});
  json.add("type", std::string(type_name(options.type)));
  json.add("count", std::uint64_t{summary.count});
  json.add("operations", summary.outcome.operations);
  json.add("checked", summary.outcome.checked);
  json.add("checksum", hex(summary.outcome.checksum));
  json.add("connect_seconds", summary.connect_seconds);
  json.add("seconds", summary.outcome.seconds);
  if (options.worker.straggler_deadline.count() != 0) add_partial(json, summary.outcome.partial);
  add_statistics(json, summary.statistics);
  return json.str();
}

}  // namespace natagg::tools
