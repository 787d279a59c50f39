// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/trace/trace_session.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "proto/serial.hpp"

namespace natagg::tools {
namespace {

/// Never 0, which stands for no contribution.
std::uint64_t hash_of(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::hash<std::string_view>{}(text) | 1;
}

aggregator::Chunk chunk_of(const proto::Header& header) {
  return {.element = header.element.value(),
          .fingerprint = header.fingerprint.value(),
          .operation = header.operation.value(),
          .count = header.count.value()};
}

/// "rank 3", "ranks 0, 1 and 5", "ranks 0, 1, 2 and 97 more".
std::string list_of_ranks(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kNamed = 16;
  const std::size_t named = ranks.size() > kNamed ? kNamed : ranks.size() - 1;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < named; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (named != 0) text += " and ";
  if (ranks.size() > kNamed) return text + std::to_string(ranks.size() - kNamed) + " more";
  return text + std::to_string(ranks.back());
}

std::string at(std::uint32_t sequence) {
  return "sequence " + std::to_string(sequence);
}

}  // namespace

std::string first_difference(std::span<const std::uint8_t> bytes,
                             std::span<const std::uint8_t> expected) {
  if (bytes.size() != expected.size()) {
    return "it has " + std::to_string(bytes.size()) + " values, not " +
           std::to_string(expected.size());
  }
  const auto place = std::ranges::mismatch(bytes, expected);
  if (place.in1 == bytes.end()) return "its terms are not those of the DATA";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "value %zu is 0x%02x, not 0x%02x",
                static_cast<std::size_t>(place.in1 - bytes.begin()), *place.in1, *place.in2);
  return text.data();
}

TraceSession::TraceSession(std::uint32_t job, std::uint32_t epoch, const proto::Endpoint& shard,
                           Joins joins, const PacketPlace& packet)
    : job_(job), epoch_(epoch), shard_(shard), joins_(std::move(joins)), first_packet_(packet) {
  values_ = proto::kMaxValues;
  window_ = proto::kMaxWindow;
  for (const Join& join : joins_) {
    if (join.datagram.empty()) continue;
    values_ = std::min(values_, join.body().values.value());
    window_ = std::min(window_, join.body().window.value());
  }
}

void TraceSession::on_join(std::uint16_t rank, const Join& join) {
  if (rank >= joins_.size() || !joins_[rank].datagram.empty()) return;
  joins_[rank] = join;
  if (welcomed_) return;
  values_ = std::min(values_, join.body().values.value());
  window_ = std::min(window_, join.body().window.value());
}

void TraceSession::on_welcome(const proto::WelcomeBody& body) {
  welcomed_ = true;
  values_ = body.values.value();
  window_ = body.window.value();
  first_sequence_ = body.first_sequence.value();
}

bool TraceSession::drops_stragglers() const {
  return std::ranges::any_of(joins_, [](const Join& join) {
    return !join.datagram.empty() && join.body().stragglers.value() != 0;
  });
}

bool TraceSession::acceptable(const TracePacket& packet, const proto::Header& header) {
  const std::uint16_t rank = header.rank.value();
  if (rank >= joins_.size() || header.count.value() > values_) return false;
  if (!joins_[rank].datagram.empty()) {
    const proto::Header join = proto::read_header(joins_[rank].datagram);
    const bool nearest = joins_[rank].body().rounding != 0;
    if (packet.from != joins_[rank].from || header.shift != join.shift ||
        ((header.flags & proto::kFlagNearest) != 0) != nearest) {
      return false;
    }
  }
  const auto in_window = [&] {
    return header.slot.value() == (header.sequence.value() & (window_ - 1U));
  };
  // An aggregator may have agreed to fewer slots than all ranks proposed.
  while (!welcomed_ && window_ > 1 && !in_window()) window_ /= 2;
  return in_window() && well_formed(proto::payload(packet.datagram));
}

void TraceSession::on_data(const TracePacket& packet, Findings& findings) {
  const proto::Header header = proto::read_header(packet.datagram);
  if (!acceptable(packet, header)) return;
  const auto bytes = proto::payload(packet.datagram);
  const std::uint32_t sequence = header.sequence.value();
  if (!least_sequence_ || proto::serial_less(sequence, *least_sequence_)) {
    least_sequence_ = sequence;
  }
  TraceChunk& chunk = chunks_[sequence];
  if (chunk.contributions.empty()) {
    chunk.terms = chunk_of(header);
    chunk.first_packet = packet.place;
    chunk.contributions.resize(joins_.size());
    chunk.sum.emplace(bytes.size());
  }
  const std::uint16_t rank = header.rank.value();
  const std::string who =
      describe() + ": DATA of rank " + std::to_string(rank) + ", " + at(sequence) + ", ";
  if (chunk.terms != chunk_of(header)) {
    return findings.add(packet.place, who + "is for another chunk than the first, " +
                                          to_string(chunk.first_packet) + ", says");
  }
  const std::uint64_t hash = hash_of(bytes);
  std::uint64_t& contribution = chunk.contributions[rank];
  if (contribution != 0) {
    if (contribution != hash) {
      findings.add(packet.place, who + "has other values than when it was sent before");
    }
    return;
  }
  contribution = hash;
  chunk.specials |= std::ranges::any_of(bytes, nat8::is_special);
  chunk.sum->add(bytes);
  if (++chunk.ranks == joins_.size()) complete(chunk, sequence, findings);
}

void TraceSession::complete(TraceChunk& chunk, std::uint32_t sequence, Findings& findings) {
  const auto join = std::ranges::find_if(joins_, [](const Join& j) { return !j.datagram.empty(); });
  const proto::JoinBody terms = join->body();
  const proto::RoundingKey key{.seed = terms.seed.value(),
                               .operation = chunk.terms.operation,
                               .who = proto::kAggregatorRank,
                               .mode = static_cast<proto::Rounding>(terms.rounding)};
  chunk.expected = chunk.sum->result(chunk.terms.element, key);
  chunk.sum.reset();
  ++complete_;
  for (const auto& [packet, bytes] : std::exchange(chunk.early, {})) {
    compare(chunk, sequence, packet, bytes, findings);
  }
}

void TraceSession::compare(const TraceChunk& chunk, std::uint32_t sequence,
                           const PacketPlace& packet, std::span<const std::uint8_t> bytes,
                           Findings& findings) {
  if (std::ranges::equal(bytes, chunk.expected)) {
    ++recorded_.right;
    return;
  }
  ++recorded_.wrong;
  findings.add(packet, describe() + ": RESULT, " + at(sequence) + ": " +
                           first_difference(bytes, chunk.expected) + " as its DATA imply");
}

void TraceSession::on_result(const TracePacket& packet, Findings& findings) {
  const proto::Header header = proto::read_header(packet.datagram);
  const auto bytes = proto::payload(packet.datagram);
  const auto found = chunks_.find(header.sequence.value());
  if (found == chunks_.end()) {
    ++recorded_.unchecked;
    return;
  }
  TraceChunk& chunk = found->second;
  if (chunk.terms != chunk_of(header)) {
    ++recorded_.wrong;
    return findings.add(packet.place, describe() + ": RESULT, " + at(found->first) +
                                          ", is for another chunk than its DATA");
  }
  if (chunk.complete()) return compare(chunk, found->first, packet.place, bytes, findings);
  chunk.early.emplace(packet.place, std::vector(bytes.begin(), bytes.end()));
}

void TraceSession::finish(const std::string& trace) {
  std::vector<std::size_t> missing;
  for (std::size_t rank = 0; rank < joins_.size(); ++rank) {
    if (joins_[rank].datagram.empty()) missing.push_back(rank);
  }
  if (!missing.empty()) {
    throw TraceError(trace + ": " + to_string(first_packet_) + " belongs to " + describe() +
                     " of " + std::to_string(joins_.size()) + " ranks, and no JOIN of " +
                     list_of_ranks(missing) +
                     " is in the trace: begin to record before the ranks start, and record all");
  }
  if (!welcomed_) first_sequence_ = least_sequence_.value_or(0);
  for (auto& [sequence, chunk] : chunks_) {
    recorded_.unchecked += chunk.early.size();
    chunk.early.clear();
    chunk.sum.reset();
  }
}

const TraceChunk* TraceSession::chunk(std::uint32_t sequence) const {
  const auto found = chunks_.find(sequence);
  return found == chunks_.end() ? nullptr : &found->second;
}

std::string TraceSession::describe() const {
  return "job " + std::to_string(job_) + " epoch " + std::to_string(epoch_) + " at " +
         proto::to_string(shard_);
}

}  // namespace natagg::tools
