// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A virtual machine that runs one worker: the shipped Stream, a receive buffer in front of it and
// a script of all-reduces. It can be paused, as an operating system deschedules a process, and it
// can vanish, as a machine without power.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "simulation/clock.hpp"
#include "simulation/invariants.hpp"
#include "simulation/network.hpp"
#include "worker_lib/core/stream.hpp"

namespace natagg::simulation {

/// An all-reduce that a worker is to submit, and how it ended.
struct Job {
  proto::Operation operation;
  std::vector<float> input;
  bool in_place = false;
  bool after_previous = false;  // wait for the end of the previous one too
  Time submit_at = 0;
  Time deadline = kNever;  // from submission

  std::vector<float> output;
  Time submitted = kNever;
  Time ended = kNever;
  std::optional<natagg_status> status;
  worker::PartialReport partial;
};

struct Pause {
  Time from = 0;
  Time to = 0;
};

class WorkerHost {
 public:
  /// `invariants` outlives the host.
  WorkerHost(worker::StreamConfig config, const proto::Endpoint& self, Time start,
             Invariants& invariants);

  /// Appends to the script; call before the job's submit_at.
  void add_job(Job job);
  void add_pause(Pause pause) { pauses_.push_back(pause); }
  /// Its clock is ahead of what it was, from now on.
  void leap(Time by) { clock_.leap(by); }
  /// Its clock stands until then, with all that goes by it.
  void stand(Time now, Time until) { clock_.stand(now, until); }
  void close_at(Time time) { close_at_ = time; }
  /// Closes as soon as the script has ended.
  void close_when_done() { close_when_done_ = true; }
  void vanish() { alive_ = false; }

  void deliver(Packet packet, Time now);

  /// When run() next has something to do, `now` or later.
  [[nodiscard]] Time next_event(Time now) const;

  /// One turn: receives everything, submits what is due, transmits, collects completions.
  void run(Time now, Network& network);

  [[nodiscard]] const proto::Endpoint& self() const { return self_; }
  [[nodiscard]] const worker::StreamConfig& config() const { return config_; }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool started() const { return stream_.has_value(); }
  [[nodiscard]] const std::vector<Job>& jobs() const { return jobs_; }
  /// Every job of the script has ended, well or not.
  [[nodiscard]] bool done() const { return ended_ == jobs_.size(); }
  [[nodiscard]] bool closed() const {
    return stream_ && stream_->state() == worker::Stream::State::kClosed;
  }
  [[nodiscard]] const worker::Stream& stream() const { return *stream_; }
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

 private:
  [[nodiscard]] Time paused_until(Time time) const;
  [[nodiscard]] Time next_submission() const;
  void receive(Time now);
  void submit_due(Time now);
  void transmit(Time now, Network& network);
  void collect(Time now);
  void violation(const std::string& text);

  worker::StreamConfig config_;
  proto::Endpoint self_;
  Time start_;
  std::optional<worker::Stream> stream_;
  std::deque<Packet> inbox_;
  Time inbox_since_ = kNever;
  std::vector<Job> jobs_;
  std::vector<std::vector<float>> buffers_;  // input and output of jobs under way, with a margin
  std::size_t submitted_ = 0;
  std::size_t ended_ = 0;
  std::vector<Pause> pauses_;
  std::size_t groups_ = 0;
  Time close_at_ = kNever;
  bool close_when_done_ = false;
  bool alive_ = true;
  Clock clock_;
  Invariants* invariants_;
  Time last_run_ = -1;
  int turns_at_once_ = 0;
  bool due_ = false;  // the last turn left something that was due at once
  std::vector<std::string> violations_;
};

}  // namespace natagg::simulation
