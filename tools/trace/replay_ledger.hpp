// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// One playing of a trace's sessions on a live aggregator. Knows how the live sessions' jobs,
// epochs, sequences and instances differ from the recorded ones, what may be sent now, and which
// answers have come and whether they are right.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/trace/trace_survey.hpp"

namespace natagg::tools {

/// What a live aggregator made of a recorded session.
struct LiveTerms {
  std::uint32_t job = 0;
  std::uint32_t epoch = 0;
  std::uint32_t first_sequence = 0;
};

struct Answers {
  std::uint64_t right = 0;    // chunks
  std::uint64_t wrong = 0;    // packets
  std::uint64_t missing = 0;  // chunks
};

/// A packet that waits until it may be sent.
struct HeldPacket {
  PacketPlace place;
  proto::Endpoint from;
  std::vector<std::byte> datagram;  // as recorded
};

class ReplayLedger {
 public:
  /// `survey` outlives this.
  explicit ReplayLedger(const TraceSurvey& survey);

  // --- Sessions, by their index in the survey ---

  /// The JOIN of `rank` as it opens the session anew, as `job`, with an instance of its own.
  [[nodiscard]] std::vector<std::byte> join(std::size_t session, std::uint16_t rank,
                                            std::uint32_t job, std::uint64_t instance) const;
  /// LEAVE or HEARTBEAT of `rank` in the live session.
  [[nodiscard]] std::vector<std::byte> control(std::size_t session, std::uint16_t rank,
                                               proto::Type type) const;
  void set_live(std::size_t session, const LiveTerms& terms);
  [[nodiscard]] const std::optional<LiveTerms>& live(std::size_t session) const {
    return live_[session].terms;
  }

  // --- Sending ---

  /// Whether DATA of recorded `sequence` may be sent: the result of the chunk that had its slot has
  /// come. Where captures of several machines were merged, it may stand too early in the trace.
  [[nodiscard]] bool may_send(std::size_t session, std::uint32_t sequence) const;
  void hold(std::size_t session, std::uint32_t sequence, HeldPacket packet);
  /// What waited for the result of `sequence`, in its order.
  [[nodiscard]] std::vector<HeldPacket> release(std::size_t session, std::uint32_t sequence);
  [[nodiscard]] std::uint64_t held() const { return held_; }

  /// Whether a rank may leave: nothing is to be answered any more, or the recorded session was cut
  /// off too. By the clock of another machine, a LEAVE may stand before others' last DATA.
  [[nodiscard]] bool may_leave(std::size_t session) const;

  /// Puts the live session's numbers in the place of the recorded ones.
  void translate(std::size_t session, std::span<std::byte> datagram) const;

  // --- Answers ---

  struct Answer {
    std::size_t session = 0;
    std::uint32_t sequence = 0;  // as recorded
    bool first = false;          // of its chunk
  };

  /// Takes what the live aggregator sent, valid or not. Returns the chunk that a RESULT answers.
  std::optional<Answer> take(std::span<const std::byte> datagram);

  [[nodiscard]] bool answered(std::size_t session, std::uint32_t sequence) const {
    return live_[session].answered.contains(sequence);
  }

  /// Counts what has not been answered; call once, at the end.
  void finish();

  [[nodiscard]] const Answers& answers() const { return answers_; }
  [[nodiscard]] const Findings& findings() const { return findings_; }

 private:
  struct Live {
    std::optional<LiveTerms> terms;
    bool aborted = false;
    std::unordered_set<std::uint32_t> answered;  // recorded sequences
    std::unordered_map<std::uint32_t, std::vector<HeldPacket>> held;
  };

  const TraceSurvey& survey_;
  std::vector<Live> live_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> by_epoch_;  // live job, epoch
  std::uint64_t held_ = 0;
  Answers answers_;
  Findings findings_;
};

}  // namespace natagg::tools
