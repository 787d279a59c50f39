// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026, the natagg authors

#include "tools/bench/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/bench/meeting.hpp"
#include "tools/bench/observer.hpp"

namespace natagg::bench {
namespace {

/// The memory of all tensors.
class Tensors {
 public:
  explicit Tensors(const RankOptions& options) : values_(options.tensors * options.count) {
    for (std::size_t i = 0; i < options.tensors; ++i) {
      all_.push_back(std::span(values_).subspan(i * options.count, options.count));
    }
  }

  [[nodiscard]] std::span<const TensorValues> all() const { return all_; }

 private:
  std::vector<float> values_;  // zeros: its pages are there
  std::vector<TensorValues> all_;
};

/// What grew during the rows.
struct Spent {
  std::uint64_t cpu_ns = 0;
  std::vector<std::uint64_t> watched_cpu_ns;
};

class Measurement {
 public:
  Measurement(Reducer& reducer, const RankOptions& options)
      : reducer_(reducer),
        options_(options),
        meeting_(options.directory + "/meeting", reducer.rank(), reducer.world(), options.limit),
        tensors_(options),
        make_progress_([this] { reducer_.make_progress(); }) {
    if (reducer.rank() == 0) watched_ = options.watch;
    spent_.watched_cpu_ns.resize(watched_.size());
    reducer.prepare(tensors_.all());
  }

  std::string run() {
    // The operation whose values are checked does not count, but tells how long a row may be.
    double operation_s = seconds(row(1));
    check();
    spent_.cpu_ns = 0;
    std::ranges::fill(spent_.watched_cpu_ns, 0);
    tools::JsonObject before;
    reducer_.report(before);
    const NetworkTotals network_before = network_totals(options_.interface);

    std::uint64_t counted = 0;
    double elapsed_s = 0;
    std::vector<std::vector<std::uint64_t>> rows;
    for (;;) {
      const std::uint64_t length =
          meeting_.agree(row_length(counted, elapsed_s, operation_s), make_progress_);
      if (length == 0) break;
      rows.push_back(row(length));
      counted += length - 1;
      elapsed_s += seconds(rows.back());
      operation_s = seconds(rows.back()) / static_cast<double>(length);
    }

    tools::JsonObject after;
    reducer_.report(after);
    return report(rows, network_before, before, after);
  }

 private:
  static double seconds(const std::vector<std::uint64_t>& row) {
    return static_cast<double>(row.back() - row.front()) * 1e-9;
  }

  void meet() { meeting_.wait(make_progress_); }

  void fill() {
    const std::span<const TensorValues> all = tensors_.all();
    for (std::size_t i = 0; i < all.size(); ++i) reducer_.fill(all[i], i);
  }

  void check() {
    const std::span<const TensorValues> all = tensors_.all();
    for (std::size_t i = 0; i < all.size(); ++i) reducer_.check(all[i], i);
  }

  /// The row's start, and each operation's completion.
  std::vector<std::uint64_t> row(std::uint64_t length) {
    std::vector<std::uint64_t> stamps(length + 1);
    std::vector<std::uint64_t> watched_before;
    fill();
    meet();
    // The others wait until rank 0, too, has passed its second meeting.
    for (const pid_t pid : watched_) watched_before.push_back(cpu_ns(pid));
    meet();
    const std::uint64_t cpu_before = own_cpu_ns();
    stamps[0] = now_ns();
    for (std::uint64_t i = 1; i <= length; ++i) {
      reducer_.reduce(tensors_.all());
      stamps[i] = now_ns();
    }
    spent_.cpu_ns += own_cpu_ns() - cpu_before;
    meet();
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      spent_.watched_cpu_ns[i] += cpu_ns(watched_[i]) - watched_before[i];
    }
    return stamps;
  }

  /// Operations of the next row with its lead-in; 0: it is enough. Rank 0's counts.
  [[nodiscard]] std::uint64_t row_length(std::uint64_t counted, double elapsed_s,
                                         double operation_s) const {
    const std::uint64_t least = counted < options_.least ? options_.least - counted : 0;
    const double left_s = options_.seconds - elapsed_s;
    if (counted >= options_.most || (least == 0 && left_s < operation_s * 2)) return 0;
    const auto affordable = static_cast<std::uint64_t>(std::max(left_s, 0.0) / operation_s);
    return 1 + std::min({std::max(least, affordable), options_.most - counted,
                         reducer_.longest_row() - 1});
  }

  [[nodiscard]] std::string report(const std::vector<std::vector<std::uint64_t>>& rows,
                                   const NetworkTotals& network_before,
                                   const tools::JsonObject& before,
                                   const tools::JsonObject& after) const {
    const NetworkTotals network = network_totals(options_.interface);
    std::uint64_t operations = 0;
    for (const auto& row : rows) operations += row.size() - 1;
    tools::JsonObject json;
    json.add("rank", reducer_.rank());
    json.add("world", reducer_.world());
    json.add("count", options_.count);
    json.add("tensors", options_.tensors);
    json.add("operations", operations);
    json.add("rows", rows);
    json.add("cpu_ns", spent_.cpu_ns);
    json.add("watched_cpu_ns", spent_.watched_cpu_ns);
    json.add("received_bytes", network.received_bytes - network_before.received_bytes);
    json.add("sent_bytes", network.sent_bytes - network_before.sent_bytes);
    json.add("received_packets", network.received_packets - network_before.received_packets);
    json.add("sent_packets", network.sent_packets - network_before.sent_packets);
    json.add("tcp_retransmissions",
             network.tcp_retransmissions - network_before.tcp_retransmissions);
    json.add("before", before);
    json.add("after", after);
    return json.str();
  }

  Reducer& reducer_;
  const RankOptions& options_;
  Meeting meeting_;
  Tensors tensors_;
  std::function<void()> make_progress_;
  std::vector<pid_t> watched_;
  Spent spent_;
};

}  // namespace

std::string measure(Reducer& reducer, const RankOptions& options) {
  return Measurement(reducer, options).run();
}

}  // namespace natagg::bench
