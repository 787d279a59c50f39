// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

// A virtual machine that runs one worker: the shipped Stream, or one a lane, a receive buffer in
// front of them and a script of all-reduces. It can be paused, as an operating system deschedules a
// process, and it can vanish, as a machine without power.
#pragma once

#include <deque>
#include <optional>
#include <span>
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
  std::size_t lanes_ended = 0;
  natagg_status first_failure = NATAGG_OK;  // of the lanes that have ended
};

struct Pause {
  Time from = 0;
  Time to = 0;
};

class WorkerHost {
 public:
  /// `invariants` outlives the host.
  /// Its lanes, config.lane.count of them, have their ports kLanePorts apart.
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

  static constexpr std::uint16_t kLanePorts = 1'000;

  [[nodiscard]] const proto::Endpoint& self() const { return self_; }
  /// Of every lane that it may have.
  [[nodiscard]] std::vector<proto::Endpoint> endpoints() const;
  [[nodiscard]] bool owns(const proto::Endpoint& endpoint) const;
  [[nodiscard]] const worker::StreamConfig& config() const { return config_; }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool started() const { return !lanes_.empty(); }
  /// In every lane.
  [[nodiscard]] bool ready() const;
  /// In the lane with that address, which may be nobody's.
  [[nodiscard]] bool ready(const proto::Endpoint& lane) const;
  [[nodiscard]] const std::vector<Job>& jobs() const { return jobs_; }
  /// Every job of the script has ended, well or not.
  [[nodiscard]] bool done() const { return ended_ == jobs_.size(); }
  [[nodiscard]] bool closed() const;
  /// The first lane's.
  [[nodiscard]] const worker::Stream& stream() const { return lanes_.front().stream; }
  [[nodiscard]] std::uint64_t count(std::uint64_t worker::StreamStats::*counter) const;
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Lane {
    proto::Endpoint self;
    worker::Stream stream;
    std::size_t groups = 0;  // subscribed
  };

  [[nodiscard]] Time stream_event() const;
  [[nodiscard]] bool lacks_lanes() const;
  [[nodiscard]] bool takes_jobs() const;
  void start_lanes(Time now);
  void tell_other_lanes(Time now);
  [[nodiscard]] Time paused_until(Time time) const;
  [[nodiscard]] Time next_submission() const;
  void receive(Time now);
  void submit_due(Time now);
  void transmit(Time now, Network& network);
  void send(const proto::Endpoint& from, std::span<const worker::Outgoing> datagrams, Time now,
            Network& network);
  void collect(Time now);
  void note_end(const worker::Completion& completion);
  void end_job(std::size_t number, Time now);
  void violation(const std::string& text);

  worker::StreamConfig config_;
  proto::Endpoint self_;
  Time start_;
  std::deque<Lane> lanes_;  // that have started
  std::deque<Packet> inbox_;
  Time inbox_since_ = kNever;
  std::vector<Job> jobs_;
  std::vector<std::vector<float>> buffers_;  // input and output of jobs under way, with a margin
  std::size_t submitted_ = 0;
  std::size_t ended_ = 0;
  std::vector<Pause> pauses_;
  Time close_at_ = kNever;
  bool close_when_done_ = false;
  bool closing_ = false;
  bool alive_ = true;
  Clock clock_;
  Invariants* invariants_;
  Time last_run_ = -1;
  int turns_at_once_ = 0;
  bool due_ = false;  // the last turn left something that was due at once
  std::vector<std::string> violations_;
};

}  // namespace natagg::simulation
